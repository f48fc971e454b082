// Sets of processors: as the kernel writes them, and where a thread may run.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"

namespace tokamak::os {

// Most processors that are looked at: sched_setaffinity's own bound.
constexpr int kMostProcessors = 1024;

// "0-3,8,10-11", as the kernel writes sets of processors, in order; what is malformed is left out.
std::vector<int> ParseProcessors(absl::string_view list);

// Those that this thread may run on.
std::vector<int> AllowedProcessors();

}  // namespace tokamak::os
