// One packet as the bytes of one UDP datagram, in one piece: for the byte-exact test mode and
// capture files.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/icrc.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {

// Returns `address`, with RoCE's port instead of port 0.
Address WithRocePort(Address address);

// Returns the destination of a packet from `local` to `peer`: port 0 means the sender's own, so
// that devices at another port than RoCE's meet as well.
Address DestinationOf(const Address& peer, const Address& local);

// Writes BTH to ICRC to `out`, which has room for kMaxDatagram bytes; returns the length. `flow`
// goes from the packet's source to its destination. A packet marked corrupt gets a wrong ICRC;
// payload without memory (null) becomes zeros.
uint32_t EncodeDatagram(const Packet& packet, const IcrcFlow& flow, uint16_t identification, uint8_t* out);

}  // namespace tokamak::verbs::soft
