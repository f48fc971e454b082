// The route of a management datagram among NICs that share an address: a question is for the one
// that serves it, any other message for the one that gave out the ID that it answers.
//
// Thread rule: none, pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/verbs/soft/packets/packet.h"

namespace tokamak::verbs::soft {

struct MadRoute {
  std::optional<uint64_t> service_id;
  std::optional<uint32_t> share;  // NumberShare::index
};

// Returns the route of `packet`, which is to kManagementQueuePair. Neither field: it is no message
// of a connection manager, or one that any NIC may answer.
MadRoute RouteOf(const Packet& packet);

}  // namespace tokamak::verbs::soft
