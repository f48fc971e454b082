// A 64-bit hash of a stream of bytes: XXH64 with seed 0, so that `xxhsum -H64` says the same. Not
// cryptographic.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <memory>

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
  struct Free {
    void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
  };

  const std::unique_ptr<XXH64_state_t, Free> state_;
};

}  // namespace tokamak::store
