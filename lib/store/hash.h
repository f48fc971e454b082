// A 64-bit hash of a stream of bytes: XXH64 with seed 0, so that `xxhsum -H64` says the same. Not cryptographic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace tokamak::store {

class StreamHash final {
 public:
  StreamHash();

  // Adds bytes. How a stream is cut into calls does not matter.
  void Add(absl::Span<const uint8_t> bytes);

  // Of everything added so far.
  uint64_t hash() const;

 private:
  static constexpr size_t kStripe = 32;

  void AddStripe(const uint8_t* stripe);

  std::array<uint64_t, 4> lanes_;
  std::array<uint8_t, kStripe> partial_;
  uint64_t size_ = 0;
};

}  // namespace tokamak::store
