// Generation tells successive contents of one id apart: every Create draws one.
//
// A copy on another node has the original's generation, so that a late message for old content
// never touches the new.
#pragma once

#include <cstdint>
#include <utility>

#include "lib/base/object_id.h"
#include "lib/base/random.h"

namespace tokamak::base {

// 64 random bits: two generations of one id are equal with probability 2^-64.
enum class Generation : uint64_t {};

constexpr Generation kNoGeneration{0};  // of no object

inline Generation DrawGeneration(Random& random) {
  for (;;) {
    const Generation generation{random.Next()};
    if (generation != kNoGeneration) return generation;
  }
}

struct ObjectVersion {
  ObjectId id;
  Generation generation = kNoGeneration;

  bool operator==(const ObjectVersion& o) const { return id == o.id && generation == o.generation; }
  bool operator!=(const ObjectVersion& o) const { return !(*this == o); }
  bool operator<(const ObjectVersion& o) const { return id < o.id || (id == o.id && generation < o.generation); }

  template <typename H>
  friend H AbslHashValue(H state, const ObjectVersion& version) {
    return H::combine(std::move(state), version.id, static_cast<uint64_t>(version.generation));
  }
};

}  // namespace tokamak::base
