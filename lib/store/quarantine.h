// Quarantine is memory that no object has, and that no object may get: a program that is out of
// reach may still write there.
//
// Each range is held back for a keeper, until the keeper is told that the writing has ended.
// Not thread-safe: the store's loop.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "lib/store/allocator.h"
#include "lib/store/types.h"

namespace tokamak::store {

class Quarantine final {
 public:
  // From now on ranges may be held back for `keeper`.
  void Open(Owner keeper) { held_[keeper]; }

  // Holds a range back. False, and nothing is done: nobody writes there any more, for the keeper
  // was closed.
  [[nodiscard]] bool Hold(Owner keeper, const Allocation& allocation) {
    const auto it = held_.find(keeper);
    if (it == held_.end()) return false;
    it->second.push_back(allocation);
    bytes_ += allocation.size;
    return true;
  }

  // Nobody writes there any more: gives the ranges to the caller.
  std::vector<Allocation> Close(Owner keeper) {
    const auto it = held_.find(keeper);
    if (it == held_.end()) return {};
    std::vector<Allocation> ranges = std::move(it->second);
    held_.erase(it);
    for (const Allocation& range : ranges) bytes_ -= range.size;
    return ranges;
  }

  uint64_t bytes() const { return bytes_; }

  std::vector<Allocation> ranges() const {
    std::vector<Allocation> all;
    for (const auto& [keeper, ranges] : held_) all.insert(all.end(), ranges.begin(), ranges.end());
    return all;
  }

 private:
  absl::btree_map<Owner, std::vector<Allocation>> held_;
  uint64_t bytes_ = 0;
};

}  // namespace tokamak::store
