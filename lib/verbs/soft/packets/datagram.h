// One whole packet as the bytes of one UDP datagram, for whoever wants them in one piece: the
// byte-exact test mode, capture files. The udp fabric does the same without copying the payload.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/icrc.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {

// A port that is opened at 0 has RoCE's.
Address WithRocePort(Address address);

// Where a packet to `peer` goes that leaves from `local`: a port of 0 is the one that the sender
// has itself, so devices at another port than RoCE's meet as those at RoCE's do.
Address DestinationOf(const Address& peer, const Address& local);

// Writes BTH to ICRC to `out`, which has room for kMaxDatagram bytes; returns the length. `flow` is
// from the packet's source to its destination. A packet marked corrupt gets a wrong ICRC. Payload
// without memory (data is null) becomes zero bytes.
uint32_t EncodeDatagram(const Packet& packet, const IcrcFlow& flow, uint16_t identification, uint8_t* out);

}  // namespace tokamak::verbs::soft
