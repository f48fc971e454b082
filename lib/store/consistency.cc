// Store::CheckConsistency: what must hold between the parts, beyond what each part checks of itself.
#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/store/store.h"

namespace tokamak::store {

absl::Status Store::CheckConsistency() const {
  if (absl::Status s = allocator_.CheckConsistency(); !s.ok()) return s;
  if (absl::Status s = table_.CheckConsistency(); !s.ok()) return s;
  if (absl::Status s = eviction_.CheckConsistency(); !s.ok()) return s;

  std::vector<const Object*> objects = table_.List(nullptr, std::numeric_limits<size_t>::max());
  std::sort(objects.begin(), objects.end(),
            [](const Object* a, const Object* b) { return a->allocation.offset < b->allocation.offset; });
  uint64_t end = 0, used = 0, evictable = 0;
  for (const Object* object : objects) {
    const Allocation& allocation = object->allocation;
    const Location& location = object->info.location;
    const std::string id = object->info.id.ToHex();
    if (allocation.offset < end) return absl::InternalError(absl::StrCat(id, " overlaps another object"));
    if (location.offset != allocation.offset || location.total_size() > allocation.size) {
      return absl::InternalError(absl::StrCat(id, " lies outside of its allocation"));
    }
    end = allocation.offset + allocation.size;
    used += allocation.size;
    evictable += object->sealed() && object->info.pins == 0;
  }
  if (end > arena_.size()) return absl::InternalError("an object lies outside of the arena");
  if (used != allocator_.used()) return absl::InternalError("the arena does not add up: memory without an object");
  if (evictable != eviction_.objects()) return absl::InternalError("an unpinned object is missing from eviction");
  return absl::OkStatus();
}

}  // namespace tokamak::store
