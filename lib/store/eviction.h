// EvictionOrder says which objects go when room is needed: the least recently used copies that were
// pulled from other nodes. In a cache, and only when none of those helps, also the least recently
// used objects that were created here, perhaps the only copies.
//
// Law: it holds exactly the sealed objects that nobody pins. The store adds and removes them as
// pins come and go.
// All calls but ChooseRun take constant time. Not thread-safe: the store's loop.
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
  // Objects created here are offered only in a `cache`.
  explicit EvictionOrder(bool cache) : cache_(cache) {}

  // `object` is the most recently used of its origin from now on. It must outlive its stay.
  void Add(Object& object);
  void Remove(Object& object);
  void Touch(Object& object);

  // The next to go; nullptr when nothing may be evicted. It stays in the order until removed.
  Object* Next() const;

  // The run of blocks that is to be freed for `size` bytes; nothing where no eviction makes such a
  // room. What is looked at, in this order, copies before objects created here:
  // 1. the least recently used few, each with neighbours in the older half of the order,
  // 2. a part of the arena, from where the last such sweep ended, for a run of objects in the older
  //    half, and then for one without the newest eighth,
  // 3. everything: then the run whose most recently used object is the oldest is taken.
  // The first two take constant time, and one of them does for most; the third is for what needs
  // many objects side by side, or finds no room at all.
  std::optional<BlockRun> ChooseRun(Allocator& allocator, uint64_t size) const;

  // The object in a block of the allocator. It must be one that ChooseRun named, and nothing
  // evicted or pinned it since.
  Object& In(uint32_t block) const { return *in_block_[block]; }

  // What evicting everything that Next() offers would free of the arena.
  uint64_t evictable_bytes() const;

  // For tests. `objects` counts both origins, cache or not.
  absl::Status CheckConsistency() const;
  uint64_t objects() const { return pulled_.objects + created_here_.objects; }

 private:
  // The least recently used objects around which a run is looked for before all blocks are
  // searched.
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
  // Of the object in `block`: the later it was used the more, and more for what was created here.
  // Nothing: it stays.
  std::optional<uint64_t> CostOf(uint32_t block) const;

  const bool cache_;
  uint64_t last_use_ = 0;
  std::vector<Object*> in_block_;  // by the allocator's number; null: nothing that is in the order
  List pulled_;
  List created_here_;
};

}  // namespace tokamak::store
