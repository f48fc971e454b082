#include "lib/os/process/processors.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace tokamak::os {

std::vector<int> ParseProcessors(absl::string_view list) {
  std::vector<int> processors;
  for (const absl::string_view range : absl::StrSplit(absl::StripAsciiWhitespace(list), ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
    int first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) continue;
    if (!absl::SimpleAtoi(ends.second.empty() ? ends.first : ends.second, &last)) continue;
    for (int one = std::max(first, 0); one <= std::min(last, kMostProcessors - 1); ++one) processors.push_back(one);
  }
  std::sort(processors.begin(), processors.end());
  processors.erase(std::unique(processors.begin(), processors.end()), processors.end());
  return processors;
}

std::vector<int> AllowedProcessors() {
  std::vector<int> allowed;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return allowed;
  for (int one = 0; one < std::min(kMostProcessors, CPU_SETSIZE); ++one) {
    if (CPU_ISSET(static_cast<size_t>(one), &set)) allowed.push_back(one);
  }
  return allowed;
}

}  // namespace tokamak::os
