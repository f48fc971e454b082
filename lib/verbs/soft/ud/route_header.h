// The 40 bytes in front of a received datagram: InfiniBand's global route header, which RoCE fills
// with the packet's IP header.
//
// Identification and time to live, which a UDP socket does not show, are 0 and 64.
#pragma once

#include <cstdint>

#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// Writes kGlobalRouteHeader bytes to `out`. `port` is the address that `packet` came to, unless it
// came to a group.
void WriteRouteHeader(const Packet& packet, const Address& port, uint8_t* out);

}  // namespace tokamak::verbs::soft
