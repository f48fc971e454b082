// The IP addresses of a device's port for the kernel's connection manager.
//
// A RoCE port has them as GIDs; InfiniBand's and iWARP's are those of a net device, which
// libibverbs does not name. So rdma_cm is asked for the port of every address of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// Returns the best first: IPv4, then IPv6 global and unique local; link-local addresses, which need
// a scope, are left out. Their port is 0. Empty: the port has none. kUnavailable: there is no
// rdma_cm here.
absl::StatusOr<std::vector<Address>> RdmaAddressesOf(const std::string& device, uint8_t port);

}  // namespace tokamak::verbs::ibv
