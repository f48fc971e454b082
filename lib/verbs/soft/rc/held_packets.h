// HeldPackets keeps a peer's packets behind a gap (selective repeat) until their turn comes.
//
// Bound: packets further ahead than kHeldPackets are not kept. Memory is allocated when the first
// is, and used again.
// Thread rule: the NIC's mutex.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/verbs/soft/packets/packet.h"

namespace tokamak::verbs::soft {

class HeldPackets final {
 public:
  bool empty() const { return count_ == 0; }

  // Returns the packet of this sequence, or null.
  const Packet* Find(uint64_t sequence) const {
    if (empty()) return nullptr;
    const Place& place = places_[sequence % kHeldPackets];
    return place.full && place.sequence == sequence ? &place.packet : nullptr;
  }

  // Takes a copy. Returns false if it is too far ahead of `expected`, or here already.
  [[nodiscard]] bool Put(uint64_t expected, uint64_t sequence, const Packet& packet) {
    if (sequence - expected > kHeldPackets || Find(sequence) != nullptr) return false;
    if (places_.empty()) places_.resize(kHeldPackets);
    Place& place = places_[sequence % kHeldPackets];
    place.full = true;
    place.sequence = sequence;
    place.packet = packet;
    place.bytes.resize(packet.payload_length());
    uint8_t* to = place.bytes.data();
    for (PayloadSlice& slice : absl::MakeSpan(place.packet.payload, packet.slices)) {
      if (slice.data == nullptr || slice.length == 0) continue;
      std::memcpy(to, slice.data, slice.length);
      slice.data = to;
      to += slice.length;
    }
    ++count_;
    return true;
  }

  // Drops one that must be here.
  void Drop(uint64_t sequence) {
    places_[sequence % kHeldPackets].full = false;
    --count_;
  }

  // Returns how many there were.
  uint32_t Clear() {
    for (Place& place : places_) place.full = false;
    const uint32_t count = count_;
    count_ = 0;
    return count;
  }

  // Returns which of the kHeldPackets after `expected` are here, the next in the lowest bit.
  std::array<uint64_t, kHeldPackets / 64> Map(uint64_t expected) const {
    std::array<uint64_t, kHeldPackets / 64> map = {};
    for (uint32_t i = 0; i < kHeldPackets; ++i) {
      if (Find(expected + 1 + i) != nullptr) map[i / 64] |= uint64_t{1} << (i % 64);
    }
    return map;
  }

 private:
  struct Place {
    bool full = false;
    uint64_t sequence = 0;
    Packet packet;
    std::vector<uint8_t> bytes;
  };

  std::vector<Place> places_;  // by sequence modulo size
  uint32_t count_ = 0;
};

}  // namespace tokamak::verbs::soft
