// Places engine threads on processors of their RDMA device's NUMA node. From another node each
// completion, and each copied byte, crosses the link between the nodes.
//
// Pure functions of what /sys contains.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tokamak::daemon {

// Returns the processors of the NUMA node of RDMA device `name` ("mlx5_0"), below `sysfs` ("/sys").
// Empty: the kernel knows none, as on machines with one node and for devices in software.
std::vector<int> ProcessorsNear(const std::string& sysfs, absl::string_view name);

// Returns the processors to bind a thread to that may run on `allowed` and belongs near a device.
// Empty: do not bind, since none that is `near` is allowed, or all allowed ones are near.
std::vector<int> PlaceNear(const std::vector<int>& near, const std::vector<int>& allowed);

}  // namespace tokamak::daemon
