// SecretNumbers draws numbers that strangers must not guess: of queue pairs, first PSNs, CM IDs and
// transactions, tags of keys.
//
// Peers see many of them; a few numbers of base::Random would reveal its state. Each of these is a
// SipHash-2-4 (Aumasson and Bernstein 2012) of a counter, with the seed as key. A simulation's seed
// repeats them; a device on a real network gets its seed from the kernel.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace tokamak::verbs::soft {

class SecretNumbers final {
 public:
  SecretNumbers(uint64_t seed, uint64_t purpose) : seed_(seed), purpose_(purpose) {}

  // Draws uniformly over 64 bits.
  uint64_t Next();

  // Draws uniformly over [0, bound), but for an error of bound / 2^64. `bound` is not 0.
  uint64_t Below(uint64_t bound);

  // Returns a number that only the holder of the seed can compute from `message`.
  uint64_t Seal(absl::Span<const uint8_t> message) const;

 private:
  const uint64_t seed_;
  const uint64_t purpose_;
  uint64_t drawn_ = 0;
};

// Computes SipHash-2-4; both key halves are little-endian.
uint64_t SipHash(uint64_t key0, uint64_t key1, absl::Span<const uint8_t> message);

}  // namespace tokamak::verbs::soft
