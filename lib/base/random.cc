#include "lib/base/random.h"

#include "lib/base/check.h"

namespace tokamak::base {
namespace {

// Steele, Lea and Flood's generator: spreads any seed over the whole state.
uint64_t SplitMix64(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t RotateLeft(uint64_t x, int k) { return x << k | x >> (64 - k); }

}  // namespace

Random::Random(uint64_t seed) : seed_(seed) {
  uint64_t mix = seed;
  for (uint64_t& word : state_) word = SplitMix64(&mix);
}

uint64_t Random::Next() {
  const uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = RotateLeft(state_[3], 45);
  return result;
}

uint64_t Random::Below(uint64_t bound) {
  CHECK_NE(bound, uint64_t{0});
  // Values under 2^64 mod bound would favour small results; they are drawn again.
  const uint64_t uneven = (0 - bound) % bound;
  for (;;) {
    const uint64_t value = Next();
    if (value >= uneven) return value % bound;
  }
}

double Random::Fraction() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

bool Random::Chance(double probability) { return Fraction() < probability; }

Random Random::Fork(uint64_t stream) const {
  uint64_t mix = seed_;
  uint64_t other = stream ^ SplitMix64(&mix);
  return Random(SplitMix64(&other));
}

}  // namespace tokamak::base
