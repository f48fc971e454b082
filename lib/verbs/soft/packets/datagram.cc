#include "lib/verbs/soft/packets/datagram.h"

#include <cstring>

#include "lib/base/bytes.h"
#include "lib/base/check.h"

namespace tokamak::verbs::soft {

Address WithRocePort(Address address) {
  if (address.port == 0) address.port = kRoceUdpPort;
  return address;
}

Address DestinationOf(const Address& peer, const Address& local) {
  Address destination = peer;
  if (destination.port == 0) destination.port = WithRocePort(local).port;
  return destination;
}

uint32_t EncodeDatagram(const Packet& packet, const IcrcFlow& flow, uint16_t identification, uint8_t* out) {
  const uint32_t length = DatagramLength(packet);
  CHECK(IsKnown(packet.opcode) && length <= kMaxDatagram) << "opcode " << static_cast<int>(packet.opcode);
  uint8_t* p = out + EncodeHeader(packet, out);
  for (uint32_t i = 0; i < packet.slices; ++i) {
    const PayloadSlice& slice = packet.payload[i];
    if (slice.length == 0) continue;
    if (slice.data != nullptr) {
      std::memcpy(p, slice.data, slice.length);
    } else {
      std::memset(p, 0, slice.length);
    }
    p += slice.length;
  }
  std::memset(p, 0, static_cast<size_t>(out + length - p));
  const uint32_t icrc = flow.OfDatagram(identification, {out, length});
  base::StoreLittle<uint32_t>(out + length - kIcrcLength, packet.corrupt ? ~icrc : icrc);
  return length;
}

}  // namespace tokamak::verbs::soft
