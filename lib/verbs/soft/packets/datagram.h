// One packet as the bytes of one UDP datagram, in one piece: for the byte-exact test mode and
// capture files.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/icrc.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {

// Replaces port 0 by RoCE's.
Address WithRocePort(Address address);

// Returns the destination from `local`: port 0 is the sender's own, so devices at other ports than
// RoCE's meet.
Address DestinationOf(const Address& peer, const Address& local);

// Writes BTH to ICRC to `out`, of kMaxDatagram bytes; returns the length. `flow`: from the packet's
// source to its destination. A corrupt packet gets a wrong ICRC; payload without memory (null) is
// zeros.
uint32_t EncodeDatagram(const Packet& packet, const IcrcFlow& flow, uint16_t identification, uint8_t* out);

}  // namespace tokamak::verbs::soft
