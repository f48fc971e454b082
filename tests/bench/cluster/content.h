// Content is what an object of a run holds: bytes that follow from who gives it to whom, in which
// case and repetition.
//
// No two objects of a run have the same, so bytes that an earlier object left in memory, or that
// belong to another, are found.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "lib/base/object_id.h"
#include "tests/bench/cluster/plan.h"

namespace tokamak::bench {

class Content final {
 public:
  // Pieces of it begin at multiples of this.
  static constexpr uint64_t kWord = 8;

  Content(uint64_t seed, uint32_t case_number, uint32_t repetition, const Edge& edge);

  // The id of the object that holds it; no two of a run are equal.
  const base::ObjectId& id() const { return id_; }

  // Writes the bytes from `offset` on.
  void Fill(uint64_t offset, absl::Span<uint8_t> bytes) const;

 private:
  base::ObjectId id_;
  uint64_t key_ = 0;
};

}  // namespace tokamak::bench
