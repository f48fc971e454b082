// CacheModel is the arithmetic of the example: it stands for a language model, without being one.
//
// Prefill goes through the layers one after the other; each leaves keys and values of all tokens of
// the prompt, its block of the key-value cache, and cannot begin before the one below. Decoding a
// token goes through the layers as well, and reads the whole block of each: attention, a softmax of
// the query's products with the keys, and the sum of the values by it. All numbers follow from the
// seed, so that a decoder can be compared with one that has computed the blocks itself.
// Thread rule: one thread for each object.
#pragma once

#include <cstdint>
#include <vector>

#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak::example {

struct CacheShape {
  static constexpr uint32_t kMaxLayers = 512;
  static constexpr uint64_t kMaxBlockBytes = uint64_t{1} << 30;
  static constexpr uint32_t kMaxWork = 10'000;

  uint32_t layers = 24;
  uint32_t tokens = 1024;  // of the prompt
  uint32_t width = 512;    // floats of a key, and of a value; a multiple of 4
  uint32_t work = 8;       // rounds over the hidden state for each layer: what prefill costs

  uint64_t block_floats() const { return uint64_t{2} * tokens * width; }  // the keys, then the values
  uint64_t block_bytes() const { return block_floats() * sizeof(float); }
  Status Check() const;  // kInvalidArgument names what is out of bounds
};

class PrefillModel final {
 public:
  // `shape` was checked.
  PrefillModel(const CacheShape& shape, uint64_t seed);

  // The next layer's block, into `block` of shape.block_floats().
  void ComputeLayer(Span<float> block);

 private:
  const CacheShape shape_;
  const uint64_t seed_;
  uint32_t layer_ = 0;
  std::vector<float> hidden_;  // of each token
};

class DecodeModel final {
 public:
  // `shape` was checked.
  DecodeModel(const CacheShape& shape, uint64_t seed);

  // One layer of the token that is decoded now. Once for each layer, in their order.
  void Attend(Span<const float> block);

  // After the last layer: the token, and on to the next.
  uint64_t EndToken();

 private:
  const CacheShape shape_;
  std::vector<float> query_;
  std::vector<float> scores_;
};

}  // namespace tokamak::example
