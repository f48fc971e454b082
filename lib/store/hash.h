// A 64-bit hash of a stream of bytes: XXH64 with seed 0, as `xxhsum -H64` computes it. Not
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

  void Add(absl::Span<const uint8_t> bytes);

  uint64_t hash() const;

 private:
  struct Free {
    void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
  };

  const std::unique_ptr<XXH64_state_t, Free> state_;
};

}  // namespace tokamak::store
