// Where engine threads run: on processors of the NUMA node that their RDMA device hangs on. From
// another node each completion, and each byte that is copied, crosses the link between the nodes.
//
// Pure functions of what the kernel tells in /sys.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tokamak::daemon {

// Those of the NUMA node of RDMA device `name` ("mlx5_0"), below `sysfs` ("/sys"). Empty: the
// kernel knows of none, as on machines with one node and for devices in software.
std::vector<int> ProcessorsNear(const std::string& sysfs, absl::string_view name);

// Where a thread is bound that may run on `allowed` and belongs near a device. Empty: nowhere in
// particular, since no processor that is `near` is allowed, or all that are allowed are near.
std::vector<int> PlaceNear(const std::vector<int>& near, const std::vector<int>& allowed);

}  // namespace tokamak::daemon
