// Two NICs with a network namespace each, and a cable of the kernel's (veth) between them.
#pragma once

#include <functional>
#include <string>

#include "lib/verbs/soft/device.h"
#include "tests/verbs/soft/udp/path_fixture.h"

namespace tokamak::verbs::soft {

// Whether the command succeeded. Also commands that users have not in their PATH.
bool Shell(const std::string& command);

// Adds the NIC 0 at 10.9.0.2, on the interface "right", and the NIC 1 at 10.9.0.1, on "left".
// `shape` runs in the network of "left" before the NIC does, and returns what the kernel lacks for
// it. Returns why the test must be skipped; empty: it need not. The process stays in a network of
// its own.
std::string OpenVethPath(PathWorld& world, const DeviceOptions& options, const std::function<std::string()>& shape);

}  // namespace tokamak::verbs::soft
