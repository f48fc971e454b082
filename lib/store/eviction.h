// EvictionOrder says which object goes next when room is needed: the least recently used copy that was pulled from another
// node, and only when none of those is left the least recently used object that was created here, perhaps the only copy.
//
// Law: it holds exactly the sealed objects that nobody pins. The store adds and removes them as pins come and go.
// All calls take constant time. Not thread-safe: the store's loop.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "lib/store/object_table.h"

namespace tokamak::store {

class EvictionOrder final {
 public:
  // With `keep_primary`, objects created here are never offered.
  explicit EvictionOrder(bool keep_primary) : keep_primary_(keep_primary) {}

  // `object` is the most recently used of its origin from now on. It must outlive its stay.
  void Add(Object& object);
  void Remove(Object& object);
  void Touch(Object& object);

  // The next to go; nullptr when nothing may be evicted. It stays in the order until removed.
  Object* Next() const;

  // What evicting everything that Next() offers would free of the arena.
  uint64_t evictable_bytes() const;

  // For tests. `objects` counts both origins, whatever keep_primary says.
  absl::Status CheckConsistency() const;
  uint64_t objects() const { return pulled_.objects + created_here_.objects; }

 private:
  struct List {
    Object* oldest = nullptr;
    Object* newest = nullptr;
    uint64_t objects = 0;
    uint64_t bytes = 0;  // of the arena
  };

  List& ListOf(const Object& object) { return object.info.origin == Origin::kPulled ? pulled_ : created_here_; }
  static absl::Status Check(const List& list, Origin origin);

  const bool keep_primary_;
  List pulled_;
  List created_here_;
};

}  // namespace tokamak::store
