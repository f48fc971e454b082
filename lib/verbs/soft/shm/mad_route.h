// The route of a management datagram among NICs that share an address: a question goes to the one
// that serves it, any other message to the one that gave out the ID that it answers.
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

// Returns the route of a packet to kManagementQueuePair. If neither field is set, it is no CM
// message, or one that any NIC may answer.
MadRoute RouteOf(const Packet& packet);

}  // namespace tokamak::verbs::soft
