// Frame is what travels on a simulated wire: a RoCEv2 packet in Ethernet, a PFC pause frame, or, as
// bytes that nobody on the way reads, an Ethernet frame of a host outside of the simulation.
//
// Frames come from a FramePool and are linked into their queue: a warm fabric allocates nothing.
// The holder hands a frame on or gives it back.
//
// In a large network a frame has left the caches since the last hop: the members that switches read
// share one cache line, and the rest is small.
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

// Bytes, and slices without memory between them.
struct FramePayload {
  std::vector<uint8_t> bytes;
  uint32_t slices = 0;
  std::array<verbs::soft::PayloadSlice, verbs::soft::kMaxPayloadSlices> slice;
};

struct alignas(64) Frame {
  Frame() : headers() {}

  Frame* next = nullptr;    // in its queue
  uint32_t wire_bytes = 0;  // on the link: with preamble, check sum and gap
  uint32_t source = 0;      // numbers of host interfaces (AddressBook)
  uint32_t destination = 0;
  uint32_t flow = 0;              // hash of the five-tuple
  uint16_t destination_port = 0;  // UDP
  uint16_t ingress = 0;           // into its switch
  uint8_t priority = 0;           // 0 to 7
  verbs::soft::Ecn ecn = verbs::soft::Ecn::kNotCapable;
  bool corrupt = false;                   // damaged on the way
  bool is_pause = false;                  // `pause` is all that it carries
  bool is_bytes = false;                  // `payload` is a whole Ethernet frame; else a packet
  uint32_t bare_payload = 0;              // bytes of a payload without memory
  std::unique_ptr<FramePayload> payload;  // if `bare_payload` is 0; kept for the next packet
  union {
    PackedHeaders headers;  // as sent
    PauseFrame pause;
  };

  // RFC 3168.
  bool ecn_capable() const { return ecn != verbs::soft::Ecn::kNotCapable; }
  void MarkCongestion() { ecn = verbs::soft::Ecn::kMarked; }

  // Copies the payload. Slices without memory stay so.
  void Load(const verbs::soft::Packet& packet);

  // Gives the packet without the peer's IP address. The payload lies in the frame.
  void Unload(verbs::soft::Packet* packet) const;

  // Copies an Ethernet frame; returns the copy.
  void LoadBytes(absl::Span<const uint8_t> ethernet);
  absl::Span<uint8_t> bytes() { return {payload->bytes.data(), payload->slice[0].length}; }
};
static_assert(offsetof(Frame, headers) <= 64, "a switch looks at one cache line");
static_assert(sizeof(Frame) == 128, "and a NIC at both");

// Returns the largest EthernetBytes (lib/verbs/soft/packets/wire.h), a packet's wire_bytes.
uint32_t MostWireBytes(uint32_t mtu);

}  // namespace tokamak::sim
