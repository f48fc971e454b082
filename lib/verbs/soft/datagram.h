// One whole packet as the bytes of one UDP datagram, for whoever wants them in one piece: the byte-exact test mode, capture
// files. The udp fabric does the same without copying the payload.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/icrc.h"
#include "lib/verbs/soft/packet.h"
#include "lib/verbs/soft/wire.h"

namespace tokamak::verbs::soft {

// The UDP port of RoCEv2, which an Address with port 0 means.
constexpr uint16_t kRoceUdpPort = 4791;
Address WithRocePort(Address address);

// Writes BTH to ICRC to `out`, which has room for kMaxDatagram bytes; returns the length. `flow` is from the packet's source to
// its destination. A packet marked corrupt gets a wrong ICRC. Payload without memory (data is null) becomes zero bytes.
uint32_t EncodeDatagram(const Packet& packet, const IcrcFlow& flow, uint16_t identification, uint8_t* out);

}  // namespace tokamak::verbs::soft
