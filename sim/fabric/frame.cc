#include "sim/fabric/frame.h"

#include <cstring>

#include "absl/types/span.h"
#include "lib/verbs/soft/wire.h"

namespace tokamak::sim {
namespace {

using verbs::soft::Packet;
using verbs::soft::PayloadSlice;

constexpr uint32_t kEthernetBytes = 8 + 14 + 4 + 12;
constexpr uint32_t kUdpBytes = 8;
constexpr uint32_t kIpv6Bytes = 40;

}  // namespace

uint32_t MostWireBytes(uint32_t mtu) {
  return kEthernetBytes + kIpv6Bytes + kUdpBytes + verbs::soft::kMaxHeaderLength + mtu + verbs::soft::kIcrcLength;
}

void CopyPacket(const Packet& packet, Frame* frame) {
  Packet& copy = frame->packet;
  static_cast<verbs::soft::PacketHeaders&>(copy) = packet;
  copy.slices = 0;
  uint32_t real = 0;
  for (const PayloadSlice& slice : absl::MakeConstSpan(packet.payload, packet.slices)) {
    if (slice.data != nullptr) real += slice.length;
  }
  if (frame->bytes.size() < real) frame->bytes.resize(real);
  uint8_t* to = frame->bytes.data();
  for (const PayloadSlice& slice : absl::MakeConstSpan(packet.payload, packet.slices)) {
    if (slice.length == 0) continue;
    // Pieces that become neighbours are one piece.
    PayloadSlice* last = copy.slices > 0 ? &copy.payload[copy.slices - 1] : nullptr;
    if (last != nullptr && (last->data == nullptr) == (slice.data == nullptr)) {
      last->length += slice.length;
    } else {
      copy.payload[copy.slices++] = {slice.data == nullptr ? nullptr : to, slice.length};
    }
    if (slice.data == nullptr) continue;
    std::memcpy(to, slice.data, slice.length);
    to += slice.length;
  }
}

}  // namespace tokamak::sim
