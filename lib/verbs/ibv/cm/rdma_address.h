// By which IP addresses the kernel's connection manager knows a port of a device.
//
// A RoCE port has them as GIDs; InfiniBand's are those of its IPoIB net device and iWARP's those of
// the net device that it sits on, and nothing in libibverbs says which. So every address of this
// machine is tried: rdma_cm says which port it leads to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// Best first: IPv4, then IPv6 global and unique local; link-local addresses, which need a scope,
// are left out. Their port is 0. Empty: the port has none. kUnavailable: there is no rdma_cm here.
absl::StatusOr<std::vector<Address>> RdmaAddressesOf(const std::string& device, uint8_t port);

}  // namespace tokamak::verbs::ibv
