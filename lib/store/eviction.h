// EvictionOrder chooses the objects to evict when room is needed: the least recently used copies
// pulled from other nodes. In a cache, and only when none of those helps, also the least recently
// used objects created here, perhaps the only copies.
//
// Law: it holds exactly the sealed, unpinned objects. All calls except ChooseRun take constant
// time.
// Not thread-safe: the store's loop.
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

  // Makes `object` the most recently used of its origin. It must outlive its stay.
  void Add(Object& object);
  void Remove(Object& object);
  void Touch(Object& object);

  // Returns the next object to evict, or nullptr. It stays in the order until removed.
  Object* Next() const;

  // Returns the run of blocks to free for `size` bytes, or nothing if no eviction makes enough
  // room. Looks, in this order and at copies before objects created here, at
  // 1. the least recently used few, each with neighbours in the older half of the order,
  // 2. a part of the arena, from where the last such sweep ended, for a run of objects in the older
  //    half, and then for one without the newest eighth,
  // 3. everything: then the run whose most recently used object is the oldest is taken. The first
  // two take constant time, and suffice for most requests.
  std::optional<BlockRun> ChooseRun(Allocator& allocator, uint64_t size) const;

  // Returns the object in a block of a run from ChooseRun, if nothing was evicted or pinned since.
  Object& In(uint32_t block) const { return *in_block_[block]; }

  // Bytes of the arena that evicting everything evictable would free.
  uint64_t evictable_bytes() const;

  // For tests. `objects` counts both origins, cache or not.
  absl::Status CheckConsistency() const;
  uint64_t objects() const { return pulled_.objects + created_here_.objects; }

 private:
  // The number of least recently used objects around which a run is looked for first.
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
  // Cost of evicting the object in `block`: higher the later it was used, and higher for objects
  // created here. Nothing: it stays.
  std::optional<uint64_t> CostOf(uint32_t block) const;

  const bool cache_;
  uint64_t last_use_ = 0;
  std::vector<Object*> in_block_;  // by the allocator's block number; null: not in the order
  List pulled_;
  List created_here_;
};

}  // namespace tokamak::store
