// The route of a management datagram among NICs that share an address: a question goes to the one
// that serves it, others to the one that gave out the ID in them.
//
// Thread rule: any.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/verbs/soft/packets/packet.h"

namespace tokamak::verbs::soft {

struct MadRoute {
  std::optional<uint64_t> service_id;
  std::optional<uint32_t> share;  // NumberShare::index
};

// Routes a packet to kManagementQueuePair. Neither field: no CM message, or one that any NIC may
// answer.
MadRoute RouteOf(const Packet& packet);

}  // namespace tokamak::verbs::soft
