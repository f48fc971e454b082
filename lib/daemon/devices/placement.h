// Places engine threads on processors of their RDMA device's NUMA node. From another node each
// completion and copied byte crosses the link between.
//
// Pure functions of /sys.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tokamak::daemon {

// Returns the processors of the NUMA node of `name` ("mlx5_0"), below `sysfs` ("/sys"). Empty:
// unknown, as with one node or devices in software.
std::vector<int> ProcessorsNear(const std::string& sysfs, absl::string_view name);

// Returns the processors of `allowed` to bind a thread to. Empty: do not bind: no `near` one is
// allowed, or all are near.
std::vector<int> PlaceNear(const std::vector<int>& near, const std::vector<int>& allowed);

}  // namespace tokamak::daemon
