#include "examples/kv_cache/cache_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "examples/units.h"
#include "tokamak/span.h"
#include "tokamak/status.h"
#include "xxhash.h"

namespace tokamak::example {
namespace {

// A number from -1 to 1 that the three decide (the finalizer of SplitMix64).
float Noise(uint64_t seed, uint64_t a, uint64_t b) {
  uint64_t z = seed + a * 0x9e3779b97f4a7c15 + b * 0xd1b54a32d192ed03;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  return static_cast<float>(static_cast<int32_t>(z >> 40) - (1 << 23)) / static_cast<float>(1 << 23);
}

// Four sums, in an order that is written down: the compiler need not be allowed to choose one.
float Dot(const float* a, const float* b, uint32_t size) {
  std::array<float, 4> sums = {};
  for (uint32_t i = 0; i < size; i += 4) {
    for (uint32_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

constexpr uint64_t kWeights = uint64_t{1} << 32;  // beyond the number of any token

}  // namespace

Status CacheShape::Check() const {
  const auto wrong = [](auto... parts) { return Status(StatusCode::kInvalidArgument, absl::StrCat(parts...)); };
  if (layers < 1 || layers > kMaxLayers) return wrong("layers: from 1 to ", kMaxLayers);
  if (tokens < 1) return wrong("tokens: at least 1");
  if (width < 4 || width % 4 != 0) return wrong("width: a multiple of 4");
  if (uint64_t{tokens} * width > kMaxBlockBytes / sizeof(float) / 2) {
    return wrong("tokens and width: a layer's block has at most ", FormatSize(kMaxBlockBytes));
  }
  if (work < 1 || work > kMaxWork) return wrong("work: from 1 to ", kMaxWork);
  return Status();
}

PrefillModel::PrefillModel(const CacheShape& shape, uint64_t seed)
    : shape_(shape), seed_(seed), hidden_(uint64_t{shape.tokens} * shape.width) {
  for (uint64_t token = 0; token < shape_.tokens; ++token) {
    for (uint64_t i = 0; i < shape_.width; ++i) hidden_[token * shape_.width + i] = Noise(seed_, token, i);
  }
}

void PrefillModel::ComputeLayer(Span<float> block) {
  const uint64_t width = shape_.width;
  std::vector<float> weights(2 * width);
  for (uint64_t i = 0; i < 2 * width; ++i) weights[i] = Noise(seed_, kWeights + layer_, i);
  for (uint64_t token = 0; token < shape_.tokens; ++token) {
    float* const hidden = &hidden_[token * width];
    for (uint32_t round = 0; round < shape_.work; ++round) {
      for (uint64_t i = 0; i + 1 < width; ++i) {
        hidden[i] = 0.5F * hidden[i] + 0.3F * hidden[i + 1] * weights[i] + 0.2F * weights[width + i];
      }
    }
    float* const key = &block[token * width];
    float* const value = &block[(shape_.tokens + token) * width];
    for (uint64_t i = 0; i < width; ++i) {
      key[i] = hidden[i] * weights[i];
      value[i] = hidden[i] + weights[width + i];
    }
  }
  ++layer_;
}

DecodeModel::DecodeModel(const CacheShape& shape, uint64_t seed)
    : shape_(shape), query_(shape.width), scores_(shape.tokens) {
  for (uint64_t i = 0; i < shape_.width; ++i) query_[i] = Noise(~seed, 0, i);
}

void DecodeModel::Attend(Span<const float> block) {
  const uint64_t width = shape_.width;
  const float* const keys = block.data();
  const float* const values = keys + shape_.tokens * width;
  const float scale = 1.0F / std::sqrt(static_cast<float>(width));
  float most = -1e30F;
  for (uint64_t token = 0; token < shape_.tokens; ++token) {
    scores_[token] = Dot(query_.data(), keys + token * width, shape_.width) * scale;
    most = std::max(most, scores_[token]);
  }
  float sum = 0;
  for (float& score : scores_) sum += score = std::exp(score - most);
  for (float& number : query_) number *= 0.5F;
  for (uint64_t token = 0; token < shape_.tokens; ++token) {
    const float share = 0.5F * scores_[token] / sum;
    const float* const value = values + token * width;
    for (uint64_t i = 0; i < width; ++i) query_[i] += share * value[i];
  }
}

uint64_t DecodeModel::EndToken() {
  const uint64_t token = XXH64(query_.data(), query_.size() * sizeof(float), 0);
  for (uint64_t i = 0; i < shape_.width; ++i) query_[i] = 0.5F * query_[i] + 0.5F * Noise(token, 0, i);
  return token;
}

}  // namespace tokamak::example
