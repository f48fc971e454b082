// Random is a fast, seeded stream of numbers (xoshiro256**, Blackman and Vigna 2018), the same on
// every machine.
//
// Every node and every link has its own stream, so that draws of one never shift those of another.
// Logic uses only this: the distributions of <random> differ between standard libraries. Not for
// secrets.
#pragma once

#include <cstdint>

namespace tokamak::base {

class Random final {
 public:
  explicit Random(uint64_t seed);

  // Draws uniformly over 64 bits.
  uint64_t Next();

  // Draws uniformly over [0, bound). `bound` is not 0.
  uint64_t Below(uint64_t bound);

  // Draws uniformly over [0, 1).
  double Fraction();

  // True with the given probability; 0 never, 1 always.
  bool Chance(double probability);

  // Returns an independent stream for the part `stream` (a node's index), without moving this one.
  Random Fork(uint64_t stream) const;

 private:
  uint64_t state_[4];
  uint64_t seed_;
};

}  // namespace tokamak::base
