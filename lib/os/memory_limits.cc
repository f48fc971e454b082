#include "lib/os/memory_limits.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tokamak::os {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  uint64_t value = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(ReadText(path)), &value)) return std::nullopt;  // or "max"
  return value;
}

struct GroupFiles {
  std::string bound;
  std::vector<std::string> used;  // use of the bound, the largest counts; none: all of it is free
};

uint64_t LargestOf(const std::string& folder, const std::vector<std::string>& files) {
  uint64_t largest = 0;
  for (const std::string& file : files) largest = std::max(largest, ReadNumber(folder + file).value_or(0));
  return largest;
}

// Lowers `limit` to what is left of the bounds of a control group and of the groups around it.
void LowerToGroup(const std::string& root, std::string group, const GroupFiles& files, MemoryLimit* limit) {
  for (;;) {
    const std::string folder = absl::StrCat(root, group, "/");
    if (const std::optional<uint64_t> bound = ReadNumber(folder + files.bound)) {
      const uint64_t left = *bound - std::min(*bound, LargestOf(folder, files.used));
      if (left < limit->bytes) *limit = {left, absl::StrCat("the control group's ", folder, files.bound)};
    }
    if (group.empty() || group == "/") return;
    group.resize(group.rfind('/'));
  }
}

// By the files of version 2, and by those of version 1, whose controller has a name.
void LowerToGroups(const std::string& root, const GroupFiles& current, const std::string& controller,
                   const GroupFiles& older, MemoryLimit* limit) {
  const std::string groups = ReadText(root + "/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !absl::StartsWith(parts[2], "/")) continue;
    const std::string group(parts[2]);
    const std::string folder = root + "/sys/fs/cgroup";
    if (parts[1].empty()) LowerToGroup(folder, group, current, limit);
    if (parts[1] == controller) LowerToGroup(folder + "/" + controller, group, older, limit);
  }
}

// Writes 64KB, 2MB, 1GB, as in the kernel's file names.
std::string SizeInNames(uint64_t bytes) {
  if (bytes >= uint64_t{1} << 30) return absl::StrCat(bytes >> 30, "GB");
  if (bytes >= uint64_t{1} << 20) return absl::StrCat(bytes >> 20, "MB");
  return absl::StrCat(bytes >> 10, "KB");
}

}  // namespace

MemoryLimit OrdinaryMemoryLimit() {
  MemoryLimit limit;
  const std::string meminfo = ReadText("/proc/meminfo");
  const std::optional<uint64_t> available = MeminfoValue(meminfo, "MemAvailable");
  if (available.has_value()) {
    limit = {(*available + MeminfoValue(meminfo, "SwapFree").value_or(0)) * 1024, "memory and swap that are free"};
  }
  // Used memory is mostly files' contents, which give way.
  LowerToGroups("", {"memory.max", {}}, "memory", {"memory.limit_in_bytes", {}}, &limit);
  return limit;
}

HugePages FreeHugePages(const std::string& root) {
  const std::string meminfo = ReadText(root + "/proc/meminfo");
  HugePages pages;
  pages.page_size = MeminfoValue(meminfo, "Hugepagesize").value_or(0) * 1024;
  const uint64_t free = MeminfoValue(meminfo, "HugePages_Free").value_or(0);
  pages.free = free - std::min(free, MeminfoValue(meminfo, "HugePages_Rsvd").value_or(0));
  if (pages.page_size == 0) return pages;
  // The kernel gives away pages beyond a group's bound, and a process that touches them dies by
  // SIGBUS.
  const std::string prefix = absl::StrCat("hugetlb.", SizeInNames(pages.page_size), ".");
  MemoryLimit limit;
  // Pages mapped and not touched yet count as used ("rsvd", since Linux 5.7).
  LowerToGroups(root, {prefix + "max", {prefix + "current", prefix + "rsvd.current"}}, "hugetlb",
                {prefix + "limit_in_bytes", {prefix + "usage_in_bytes", prefix + "rsvd.usage_in_bytes"}}, &limit);
  pages.by_group = limit.bytes / pages.page_size < pages.free;
  if (pages.by_group) pages.free = limit.bytes / pages.page_size;
  return pages;
}

std::optional<uint64_t> MeminfoValue(absl::string_view text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, key) || !absl::ConsumePrefix(&line, ":")) continue;
    uint64_t value = 0;
    absl::ConsumeSuffix(&line, "kB");
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &value)) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

}  // namespace tokamak::os
