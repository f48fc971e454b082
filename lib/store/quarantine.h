// Quarantine is memory that belongs to no object and is not allocated, since a program out of reach
// may still write there.
//
// A range is held back until its keeper is closed, and counts for the program that left it.
// Thread rule: the store's loop.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "lib/store/allocator.h"
#include "lib/store/programs.h"
#include "lib/store/types.h"

namespace tokamak::store {

class Quarantine final {
 public:
  struct Range {
    Allocation allocation;
    Programs::Account* account = nullptr;  // of that program
    uint64_t bytes = 0;                    // of the object there
  };

  void Open(Owner keeper) { held_[keeper]; }

  // Returns false, changing nothing, if the keeper was closed: nobody writes there any more.
  [[nodiscard]] bool Hold(Owner keeper, const Range& range) {
    const auto it = held_.find(keeper);
    if (it == held_.end()) return false;
    it->second.push_back(range);
    bytes_ += range.allocation.size;
    return true;
  }

  // Returns the keeper's ranges: nobody writes there any more.
  std::vector<Range> Close(Owner keeper) {
    const auto it = held_.find(keeper);
    if (it == held_.end()) return {};
    std::vector<Range> ranges = std::move(it->second);
    held_.erase(it);
    for (const Range& range : ranges) bytes_ -= range.allocation.size;
    return ranges;
  }

  uint64_t bytes() const { return bytes_; }

  std::vector<Range> ranges() const {
    std::vector<Range> all;
    for (const auto& [keeper, ranges] : held_) all.insert(all.end(), ranges.begin(), ranges.end());
    return all;
  }

 private:
  absl::btree_map<Owner, std::vector<Range>> held_;
  uint64_t bytes_ = 0;
};

}  // namespace tokamak::store
