// Frame is what travels on a simulated wire: a RoCEv2 packet in Ethernet, a PFC pause frame, or, as
// bytes that nobody on the way reads, an Ethernet frame of a host outside of the simulation.
//
// Frames come from a FramePool and are linked into whatever queue they are in, so a fabric that has
// warmed up allocates nothing. Whoever holds a frame hands it on or gives it back to the pool.
//
// In a large network nearly every frame that a switch looks at has left the processor's caches
// since the last hop. So what switches look at stands in one cache line, and the rest is small.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/packet.h"
#include "sim/fabric/link/packed_headers.h"
#include "sim/fabric/link/pause_frame.h"

namespace tokamak::sim {

// Bytes that a frame carries, and those without memory between them.
struct FramePayload {
  std::vector<uint8_t> bytes;
  uint32_t slices = 0;
  std::array<verbs::soft::PayloadSlice, verbs::soft::kMaxPayloadSlices> slice;
};

struct alignas(64) Frame {
  Frame() : headers() {}

  Frame* next = nullptr;          // in the queue that it is in
  uint32_t wire_bytes = 0;        // of the link's time: with preamble, check sum and gap
  uint32_t source = 0;            // numbers of host interfaces, see AddressBook
  uint32_t destination = 0;       //
  uint32_t flow = 0;              // a hash of the five-tuple, the same for all packets of a flow
  uint16_t destination_port = 0;  // UDP
  uint16_t ingress = 0;           // the port by which it came into the switch that it is in
  uint8_t priority = 0;           // 0 to 7
  verbs::soft::Ecn ecn = verbs::soft::Ecn::kNotCapable;
  bool corrupt = false;                   // damaged on the way
  bool is_pause = false;                  // then `pause` is all that it carries
  bool is_bytes = false;                  // then `payload` is a whole Ethernet frame; else it is a packet
  uint32_t bare_payload = 0;              // bytes of a payload that has no memory at all
  std::unique_ptr<FramePayload> payload;  // where `bare_payload` is 0; kept for the next packet
  union {
    PackedHeaders headers;  // as sent
    PauseFrame pause;
  };

  // RFC 3168: whether both ends understand marks, and the mark.
  bool ecn_capable() const { return ecn != verbs::soft::Ecn::kNotCapable; }
  void MarkCongestion() { ecn = verbs::soft::Ecn::kMarked; }

  // Makes it carry `packet`: the headers, and a copy of the payload. What has no memory stays so.
  void Load(const verbs::soft::Packet& packet);

  // The packet as it is now, but for the peer's IP address. Its payload lies in the frame.
  void Unload(verbs::soft::Packet* packet) const;

  // Makes it carry a copy of an Ethernet frame, and shows that copy.
  void LoadBytes(absl::Span<const uint8_t> ethernet);
  absl::Span<uint8_t> bytes() { return {payload->bytes.data(), payload->slice[0].length}; }
};
static_assert(offsetof(Frame, headers) <= 64, "a switch looks at one cache line");
static_assert(sizeof(Frame) == 128, "and a NIC at both");

// The most that EthernetBytes (lib/verbs/soft/packets/wire.h), which is a packet's wire_bytes, can be for
// this path MTU.
uint32_t MostWireBytes(uint32_t mtu);

}  // namespace tokamak::sim
