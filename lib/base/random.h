// Random is a small, fast, seeded stream of numbers (xoshiro256**, Blackman and Vigna 2018) that is
// the same on every machine.
//
// Every node and every link has its own stream, so that draws of one never shift those of another.
// Logic uses only this: <random>'s distributions differ between standard libraries. Not for
// secrets.
#pragma once

#include <cstdint>

namespace tokamak::base {

class Random final {
 public:
  explicit Random(uint64_t seed);

  // Uniform over all 64-bit values.
  uint64_t Next();

  // Uniform over [0, bound). `bound` must not be 0.
  uint64_t Below(uint64_t bound);

  // Uniform over [0, 1).
  double Fraction();

  // True with the given probability; 0 never, 1 always.
  bool Chance(double probability);

  // Returns an independent stream for a part named by `stream` (a node's index, say), without
  // moving this one.
  Random Fork(uint64_t stream) const;

 private:
  uint64_t state_[4];
  uint64_t seed_;
};

}  // namespace tokamak::base
