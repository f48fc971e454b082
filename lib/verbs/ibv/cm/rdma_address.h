// The IP addresses of a device's port for the kernel's connection manager.
//
// RoCE's are GIDs; InfiniBand's and iWARP's are a net device's, which libibverbs does not name. So
// rdma_cm is asked for the port of every address of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// Returns the best first: IPv4, then IPv6 global and unique local; not link-local, which needs a
// scope. Port 0. Empty: none. kUnavailable: no rdma_cm here.
absl::StatusOr<std::vector<Address>> RdmaAddressesOf(const std::string& device, uint8_t port);

}  // namespace tokamak::verbs::ibv
