#include "lib/os/memory_limits.h"

#include <algorithm>
#include <fstream>
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

absl::optional<uint64_t> ReadNumber(const std::string& path) {
  uint64_t value = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(ReadText(path)), &value)) return absl::nullopt;  // or "max"
  return value;
}

// A control group's bound and those of the groups around it.
void LowerToGroup(const std::string& root, std::string group, const std::string& file, MemoryLimit* limit) {
  for (;;) {
    const std::string path = absl::StrCat(root, group, "/", file);
    const absl::optional<uint64_t> bound = ReadNumber(path);
    if (bound.has_value() && *bound < limit->bytes) *limit = {*bound, absl::StrCat("the control group's ", path)};
    if (group.empty() || group == "/") return;
    group.resize(group.rfind('/'));
  }
}

// By one file of version 2 and one of version 1, whose controller has a name.
struct GroupFiles {
  std::string current;
  std::string controller;
  std::string older;
};

void LowerToGroups(const std::string& root, const GroupFiles& files, MemoryLimit* limit) {
  const std::string groups = ReadText(root + "/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !absl::StartsWith(parts[2], "/")) continue;
    const std::string group(parts[2]);
    const std::string folder = root + "/sys/fs/cgroup";
    if (parts[1].empty()) LowerToGroup(folder, group, files.current, limit);
    if (parts[1] == files.controller) LowerToGroup(folder + "/" + files.controller, group, files.older, limit);
  }
}

// As the kernel writes it in names of files: 64KB, 2MB, 1GB.
std::string SizeInNames(uint64_t bytes) {
  if (bytes >= uint64_t{1} << 30) return absl::StrCat(bytes >> 30, "GB");
  if (bytes >= uint64_t{1} << 20) return absl::StrCat(bytes >> 20, "MB");
  return absl::StrCat(bytes >> 10, "KB");
}

}  // namespace

MemoryLimit OrdinaryMemoryLimit() {
  MemoryLimit limit;
  const std::string meminfo = ReadText("/proc/meminfo");
  const absl::optional<uint64_t> available = MeminfoValue(meminfo, "MemAvailable");
  if (available.has_value()) {
    limit = {(*available + MeminfoValue(meminfo, "SwapFree").value_or(0)) * 1024, "memory and swap that are free"};
  }
  LowerToGroups("", {"memory.max", "memory", "memory.limit_in_bytes"}, &limit);
  return limit;
}

HugePages FreeHugePages(const std::string& root) {
  const std::string meminfo = ReadText(root + "/proc/meminfo");
  HugePages pages;
  pages.page_size = MeminfoValue(meminfo, "Hugepagesize").value_or(0) * 1024;
  const uint64_t free = MeminfoValue(meminfo, "HugePages_Free").value_or(0);
  pages.free = free - std::min(free, MeminfoValue(meminfo, "HugePages_Rsvd").value_or(0));
  if (pages.page_size == 0) return pages;
  // Beyond a group's bound the kernel gives the pages away and ends who touches them, by SIGBUS.
  const std::string prefix = absl::StrCat("hugetlb.", SizeInNames(pages.page_size), ".");
  MemoryLimit limit;
  LowerToGroups(root, {prefix + "max", "hugetlb", prefix + "limit_in_bytes"}, &limit);
  pages.free = std::min(pages.free, limit.bytes / pages.page_size);
  return pages;
}

absl::optional<uint64_t> MeminfoValue(absl::string_view text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, key) || !absl::ConsumePrefix(&line, ":")) continue;
    uint64_t value = 0;
    absl::ConsumeSuffix(&line, "kB");
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &value)) return absl::nullopt;
    return value;
  }
  return absl::nullopt;
}

}  // namespace tokamak::os
