// SecretNumbers draws the numbers that strangers must not be able to guess: numbers of queue pairs,
// first PSNs, IDs and transactions of the connection manager, tags of keys.
//
// Peers see many of them. base::Random's state, and with it all that it ever draws, follows from a
// few of its numbers; from these nothing follows without the seed, since each is a SipHash-2-4
// (Aumasson and Bernstein 2012) of a counter. The same seed gives the same numbers, so a simulation
// is repeatable; a device on a real network gets its seed from the kernel.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace tokamak::verbs::soft {

class SecretNumbers final {
 public:
  // The numbers of one seed for one purpose.
  SecretNumbers(uint64_t seed, uint64_t purpose) : seed_(seed), purpose_(purpose) {}

  // Uniform over all 64-bit values.
  uint64_t Next();

  // Uniform over [0, bound), but for less than bound / 2^64. `bound` must not be 0.
  uint64_t Below(uint64_t bound);

  // What only the holder of the seed can make of `message`.
  uint64_t Seal(absl::Span<const uint8_t> message) const;

 private:
  const uint64_t seed_;
  const uint64_t purpose_;
  uint64_t drawn_ = 0;
};

// SipHash-2-4 with the key (`key0`, `key1`), both little-endian.
uint64_t SipHash(uint64_t key0, uint64_t key1, absl::Span<const uint8_t> message);

}  // namespace tokamak::verbs::soft
