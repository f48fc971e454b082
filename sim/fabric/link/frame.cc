#include "sim/fabric/link/frame.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::sim {
namespace {

using verbs::soft::Packet;
using verbs::soft::PayloadSlice;

constexpr uint32_t kEthernetBytes = 8 + 14 + 4 + 12;
constexpr uint32_t kUdpBytes = 8;
constexpr uint32_t kIpv6Bytes = 40;

// Copies the slices that have memory, and merges neighbours.
void CopyPayload(absl::Span<const PayloadSlice> from, uint32_t real, FramePayload* payload) {
  if (payload->bytes.size() < real) payload->bytes.resize(real);
  uint8_t* to = payload->bytes.data();
  payload->slices = 0;
  for (const PayloadSlice& slice : from) {
    if (slice.length == 0) continue;
    PayloadSlice* last = payload->slices > 0 ? &payload->slice[payload->slices - 1] : nullptr;
    if (last != nullptr && (last->data == nullptr) == (slice.data == nullptr)) {
      last->length += slice.length;
    } else {
      payload->slice[payload->slices++] = {slice.data == nullptr ? nullptr : to, slice.length};
    }
    if (slice.data == nullptr) continue;
    std::memcpy(to, slice.data, slice.length);
    to += slice.length;
  }
}

}  // namespace

void Frame::Load(const Packet& packet) {
  headers.Pack(packet);
  ecn = packet.ecn;
  corrupt = packet.corrupt;
  is_pause = false;
  is_bytes = false;
  uint32_t real = 0;
  uint32_t bare = 0;
  const auto slices = absl::MakeConstSpan(packet.payload, packet.slices);
  for (const PayloadSlice& slice : slices) (slice.data != nullptr ? real : bare) += slice.length;
  bare_payload = real == 0 ? bare : 0;
  if (real == 0) {
    if (payload != nullptr) payload->slices = 0;
    return;
  }
  if (payload == nullptr) payload = std::make_unique<FramePayload>();
  CopyPayload(slices, real, payload.get());
}

void Frame::Unload(Packet* packet) const {
  headers.Unpack(packet);
  packet->ecn = ecn;
  packet->corrupt = corrupt;
  packet->slices = 0;
  if (bare_payload > 0) {
    packet->payload[packet->slices++] = {nullptr, bare_payload};
  } else if (payload != nullptr) {
    packet->slices = payload->slices;
    std::copy_n(payload->slice.begin(), payload->slices, packet->payload);
  }
}

void Frame::LoadBytes(absl::Span<const uint8_t> ethernet) {
  headers = PackedHeaders();
  ecn = verbs::soft::Ecn::kNotCapable;
  corrupt = false;
  is_pause = false;
  is_bytes = true;
  bare_payload = 0;
  if (payload == nullptr) payload = std::make_unique<FramePayload>();
  const PayloadSlice whole = {ethernet.data(), static_cast<uint32_t>(ethernet.size())};
  CopyPayload(absl::MakeConstSpan(&whole, 1), whole.length, payload.get());
}

uint32_t MostWireBytes(uint32_t mtu) {
  return kEthernetBytes + kIpv6Bytes + kUdpBytes + verbs::soft::kMaxHeaderLength + mtu + verbs::soft::kIcrcLength;
}

}  // namespace tokamak::sim
