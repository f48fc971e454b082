// Sets of processors: in the kernel's notation, and where a thread may run.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"

namespace tokamak::os {

// The most processors that are looked at: sched_setaffinity's own bound.
constexpr int kMostProcessors = 1024;

// Parses the kernel's notation, "0-3,8,10-11", in order; malformed parts are left out.
std::vector<int> ParseProcessors(absl::string_view list);

std::vector<int> AllowedProcessors();

}  // namespace tokamak::os
