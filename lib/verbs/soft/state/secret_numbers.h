// SecretNumbers draws numbers that strangers must not guess: numbers of queue pairs, first PSNs,
// IDs and transactions of the connection manager, tags of keys.
//
// Peers see many of them. A few numbers of base::Random reveal its state; these reveal nothing
// without the seed, since each is a SipHash-2-4 (Aumasson and Bernstein 2012) of a counter. The
// same seed repeats the same numbers, for simulations; a device on a real network gets its seed
// from the kernel.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace tokamak::verbs::soft {

class SecretNumbers final {
 public:
  SecretNumbers(uint64_t seed, uint64_t purpose) : seed_(seed), purpose_(purpose) {}

  // Draws, uniform over all 64-bit values.
  uint64_t Next();

  // Draws, uniform over [0, bound) except for an error of bound / 2^64. `bound` must not be 0.
  uint64_t Below(uint64_t bound);

  // Returns a number that only the holder of the seed can make of `message`.
  uint64_t Seal(absl::Span<const uint8_t> message) const;

 private:
  const uint64_t seed_;
  const uint64_t purpose_;
  uint64_t drawn_ = 0;
};

// Returns SipHash-2-4 with the key (`key0`, `key1`), both little-endian.
uint64_t SipHash(uint64_t key0, uint64_t key1, absl::Span<const uint8_t> message);

}  // namespace tokamak::verbs::soft
