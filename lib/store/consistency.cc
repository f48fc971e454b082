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

  const std::vector<const Object*> objects = table_.List(nullptr, std::numeric_limits<size_t>::max());
  uint64_t used = 0, evictable = 0;
  std::vector<Allocation> taken = quarantine_.ranges();
  for (const Object* object : objects) {
    const Allocation& allocation = object->allocation;
    const Location& location = object->info.location;
    const std::string id = object->info.id.ToHex();
    if (location.offset != allocation.offset || location.total_size() > allocation.size) {
      return absl::InternalError(absl::StrCat(id, " lies outside of its allocation"));
    }
    taken.push_back(allocation);
    evictable += object->sealed() && object->info.pins == 0;
  }
  std::sort(taken.begin(), taken.end(), [](const Allocation& a, const Allocation& b) { return a.offset < b.offset; });
  uint64_t end = 0;
  for (const Allocation& allocation : taken) {
    if (allocation.offset < end) {
      return absl::InternalError(absl::StrCat("what lies at ", allocation.offset, " overlaps another object"));
    }
    end = allocation.offset + allocation.size;
    used += allocation.size;
  }
  if (end > arena_.size()) return absl::InternalError("an object lies outside of the arena");
  if (used != allocator_.used()) return absl::InternalError("the arena does not add up: memory without an object");
  if (evictable != eviction_.objects()) return absl::InternalError("an unpinned object is missing from eviction");
  return absl::OkStatus();
}

}  // namespace tokamak::store
