#include "lib/verbs/soft/state/secret_numbers.h"

#include <array>
#include <cstddef>

#include "lib/base/check.h"

namespace tokamak::verbs::soft {
namespace {

// Keeps drawn numbers and seals apart.
constexpr uint64_t kDrawn = 0;
constexpr uint64_t kSealed = uint64_t{1} << 63;

uint64_t RotateLeft(uint64_t x, int k) { return x << k | x >> (64 - k); }

class SipState final {
 public:
  SipState(uint64_t key0, uint64_t key1)
      : v_{key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d, key0 ^ 0x6c7967656e657261, key1 ^ 0x7465646279746573} {
  }

  void Add(uint64_t word) {
    v_[3] ^= word;
    Mix(2);
    v_[0] ^= word;
  }
  uint64_t Finish() {
    v_[2] ^= 0xff;
    Mix(4);
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

 private:
  void Mix(int rounds) {
    for (; rounds > 0; --rounds) {
      v_[0] += v_[1];
      v_[1] = RotateLeft(v_[1], 13) ^ v_[0];
      v_[0] = RotateLeft(v_[0], 32);
      v_[2] += v_[3];
      v_[3] = RotateLeft(v_[3], 16) ^ v_[2];
      v_[0] += v_[3];
      v_[3] = RotateLeft(v_[3], 21) ^ v_[0];
      v_[2] += v_[1];
      v_[1] = RotateLeft(v_[1], 17) ^ v_[2];
      v_[2] = RotateLeft(v_[2], 32);
    }
  }

  std::array<uint64_t, 4> v_;
};

}  // namespace

uint64_t SipHash(uint64_t key0, uint64_t key1, absl::Span<const uint8_t> message) {
  SipState state(key0, key1);
  uint64_t word = 0;
  for (size_t i = 0; i < message.size(); ++i) {
    word |= uint64_t{message[i]} << (i % 8 * 8);
    if (i % 8 != 7) continue;
    state.Add(word);
    word = 0;
  }
  state.Add(word | static_cast<uint64_t>(message.size()) << 56);
  return state.Finish();
}

uint64_t SecretNumbers::Next() {
  std::array<uint8_t, 8> counter;
  for (size_t i = 0; i < counter.size(); ++i) counter[i] = static_cast<uint8_t>(drawn_ >> (8 * i));
  ++drawn_;
  return SipHash(seed_, purpose_ ^ kDrawn, counter);
}

uint64_t SecretNumbers::Below(uint64_t bound) {
  CHECK_NE(bound, uint64_t{0});
  return Next() % bound;
}

uint64_t SecretNumbers::Seal(absl::Span<const uint8_t> message) const {
  return SipHash(seed_, purpose_ ^ kSealed, message);
}

}  // namespace tokamak::verbs::soft
