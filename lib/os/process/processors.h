// Sets of processors: in the kernel's notation, and where a thread may run.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"

namespace tokamak::os {

// As sched_setaffinity's own bound.
constexpr int kMostProcessors = 1024;

// Parses "0-3,8,10-11", in order, without malformed parts.
std::vector<int> ParseProcessors(absl::string_view list);

std::vector<int> AllowedProcessors();

}  // namespace tokamak::os
