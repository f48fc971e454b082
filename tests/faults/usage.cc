#include "tests/faults/usage.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/faults/command.h"

namespace tokamak::faults {

namespace fs = std::filesystem;

namespace {

// How many of `kind` the kernel lists for a process; pid 0: for all. One line is one object; the
// kernel's own have no pid.
absl::StatusOr<size_t> Count(const std::string& kind, pid_t pid) {
  const auto listed = Output({"rdma", "resource", "show", kind});
  if (!listed.ok()) return listed.status();
  const std::string sign = pid == 0 ? " pid " : absl::StrCat(" pid ", pid, " ");
  size_t count = 0;
  for (const auto line : absl::StrSplit(*listed, '\n'))
    count += absl::StrContains(absl::StrCat(line, " "), sign) ? 1 : 0;
  return count;
}

absl::StatusOr<Usage> CountAll(pid_t pid) {
  Usage usage;
  const struct {
    const char* kind;
    size_t& into;
  } kinds[] = {
      {"qp", usage.queue_pairs}, {"cq", usage.completion_queues}, {"mr", usage.regions}, {"cm_id", usage.connections}};
  for (const auto& kind : kinds) {
    const auto count = Count(kind.kind, pid);
    if (!count.ok()) return count.status();
    kind.into = *count;
  }
  return usage;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Usage& usage) {
  return out << usage.descriptors << " descriptors, " << usage.queue_pairs << " queue pairs, "
             << usage.completion_queues << " completion queues, " << usage.regions << " regions, " << usage.connections
             << " connections";
}

absl::StatusOr<Usage> UsageOf(pid_t pid) {
  auto usage = CountAll(pid);
  if (!usage.ok()) return usage;
  std::error_code error;
  const fs::directory_iterator descriptors(absl::StrCat("/proc/", pid, "/fd"), error);
  if (error) return absl::UnavailableError(absl::StrCat("no process ", pid));
  usage->descriptors = static_cast<size_t>(std::distance(begin(descriptors), end(descriptors)));
  return usage;
}

std::string DescriptorsOf(pid_t pid) {
  std::map<std::string, std::string> ends;  // by the socket's name
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
      if (words.size() < 10) continue;
      ends[absl::StrCat("socket:[", words[9], "]")] = absl::StrCat(" ", words[1], " ", words[2], " state ", words[3]);
    }
  }
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(absl::StrCat("/proc/", pid, "/fd"), error)) {
    const std::string name = fs::read_symlink(entry.path(), error).string();
    names.push_back(absl::StrCat(entry.path().filename().string(), " ", name, ends[name], "\n"));
  }
  std::sort(names.begin(), names.end());
  return absl::StrJoin(names, "");
}

absl::StatusOr<Usage> UsageOfAll() { return CountAll(0); }

}  // namespace tokamak::faults
