// Packet sequence numbers: 24 bits on the wire, 64 bits inside, so that no comparison ever wraps.
// (9.7.1)
//
// Law: a wire number names the sequence nearest to the receiver's position, at most 2^23 away.
#pragma once

#include <cstdint>

#include "lib/verbs/soft/packets/packet.h"

namespace tokamak::verbs::soft {

// Returns a first PSN's sequence, far enough from 0 that earlier ones exist.
constexpr uint64_t FirstSequence(uint32_t psn) { return (uint64_t{1} << 24) | (psn & kPsnMask); }

constexpr uint32_t ToPsn(uint64_t sequence) { return static_cast<uint32_t>(sequence) & kPsnMask; }

// Returns the sequence nearest to `reference` that ends in `psn`.
constexpr uint64_t ExtendPsn(uint32_t psn, uint64_t reference) {
  const uint32_t ahead = (psn - static_cast<uint32_t>(reference)) & kPsnMask;
  return ahead < (1u << 23) ? reference + ahead : reference + ahead - (uint64_t{1} << 24);
}

// Returns how many packets carry `length` bytes; an empty message is one packet.
constexpr uint64_t PacketsFor(uint64_t length, uint32_t mtu) { return length == 0 ? 1 : (length + mtu - 1) / mtu; }

}  // namespace tokamak::verbs::soft
