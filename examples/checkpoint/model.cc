#include "examples/checkpoint/model.h"

#include <algorithm>
#include <array>

#include "xxhash.h"

namespace tokamak::example {
namespace {

constexpr float kRate = 0.0006F;
constexpr float kMomentum = 0.4F;

// A number from -1 to 1 that `a` and `b` decide (the finalizer of SplitMix64).
float Noise(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9e3779b97f4a7c15 + b * 0xd1b54a32d192ed03 + 0x2545f4914f6cdd1d;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  return static_cast<float>(static_cast<int32_t>(z >> 40) - (1 << 23)) / static_cast<float>(1 << 23);
}

// Four sums, in an order that is written down: the compiler need not be allowed to choose one.
float Dot(const float* a, const float* b, uint64_t size) {
  std::array<float, 4> sums = {};
  for (uint64_t i = 0; i < size; i += 4) {
    for (uint64_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

Model::Model(uint64_t state_bytes)
    : rows_(std::max<uint64_t>(1, state_bytes / kRowBytes)), state_(rows_ * kColumns * 2), inputs_(kBatch * kColumns) {}

double Model::Step() {
  std::array<float, kBatch> teachers = {};
  for (uint64_t example = 0; example < kBatch; ++example) {
    float* const input = &inputs_[example * kColumns];
    for (uint64_t i = 0; i < kColumns; ++i) {
      input[i] = Noise(step_ * kBatch + example, i);
      teachers[example] += input[i] * Noise(~uint64_t{0}, i);
    }
  }
  double squares = 0;
  for (uint64_t row = 0; row < rows_; ++row) {
    float* const weights = &state_[row * kColumns];
    float* const momentum = &state_[(rows_ + row) * kColumns];
    const float scale = Noise(~uint64_t{1}, row);
    for (uint64_t example = 0; example < kBatch; ++example) {
      const float* const input = &inputs_[example * kColumns];
      const float error = Dot(weights, input, kColumns) - scale * teachers[example];
      squares += static_cast<double>(error) * static_cast<double>(error);
      const float factor = kRate * error;
      for (uint64_t i = 0; i < kColumns; ++i) {
        momentum[i] = kMomentum * momentum[i] + factor * input[i];
        weights[i] -= momentum[i];
      }
    }
  }
  ++step_;
  return squares / static_cast<double>(rows_ * kBatch);
}

uint64_t Model::Hash() const { return XXH64(state().data(), state().size(), 0); }

}  // namespace tokamak::example
