// EvictionOrder chooses the objects to evict when room is needed: the least recently used copies
// pulled from other nodes. In a cache, if none of those helps, also objects created here, perhaps
// the only copies.
//
// Law: it holds exactly the sealed, unpinned objects. All calls except ChooseRun take constant
// time.
// Thread rule: the store's loop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "lib/store/allocator.h"
#include "lib/store/object_table.h"

namespace tokamak::store {

class EvictionOrder final {
 public:
  explicit EvictionOrder(bool cache) : cache_(cache) {}

  // Makes `object` the most recently used of its origin. It must outlive its stay.
  void Add(Object& object);
  void Remove(Object& object);
  void Touch(Object& object);

  // Null: none. It stays until removed.
  Object* Next() const;

  // Returns the run of blocks to free for `size` bytes, or nothing if no eviction makes enough
  // room. Looks, copies first, at
  // 1. the least recently used few, each with neighbours in the older half of the order,
  // 2. a part of the arena, from where the last such sweep ended, for a run of the older half, and
  //    then for one without the newest eighth,
  // 3. everything: for the run whose most recently used object is the oldest.
  // The first two take constant time, and suffice for most requests.
  std::optional<BlockRun> ChooseRun(Allocator& allocator, uint64_t size) const;

  // The run is ChooseRun's, and nothing was evicted or pinned since.
  Object& In(uint32_t block) const { return *in_block_[block]; }

  // Counts bytes of the arena.
  uint64_t evictable_bytes() const;

  // For tests. `objects` counts both origins.
  absl::Status CheckConsistency() const;
  uint64_t objects() const { return pulled_.objects + created_here_.objects; }

 private:
  // Objects around which a run is looked for first.
  static constexpr int kCandidates = 8;

  struct List {
    Object* oldest = nullptr;
    Object* newest = nullptr;
    uint64_t objects = 0;
    uint64_t bytes = 0;  // of the arena
  };

  List& ListOf(const Object& object) { return object.info.origin == Origin::kPulled ? pulled_ : created_here_; }
  static absl::Status Check(const List& list, Origin origin);
  std::optional<BlockRun> ChooseOldRun(const List& list, Allocator& allocator, uint64_t size) const;
  // Returns more the later the object was used, and for one created here. Nothing: it stays.
  std::optional<uint64_t> CostOf(uint32_t block) const;

  const bool cache_;
  uint64_t last_use_ = 0;
  std::vector<Object*> in_block_;  // by the allocator's block number; null: not in the order
  List pulled_;
  List created_here_;
};

}  // namespace tokamak::store
