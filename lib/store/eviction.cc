#include "lib/store/eviction.h"

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::store {

void EvictionOrder::Add(Object& object) {
  CHECK(object.sealed() && object.info.pins == 0) << object.info.id.ToHex();
  List& list = ListOf(object);
  object.older = list.newest;
  object.newer = nullptr;
  (list.newest == nullptr ? list.oldest : list.newest->newer) = &object;
  list.newest = &object;
  ++list.objects;
  list.bytes += object.allocation.size;
}

void EvictionOrder::Remove(Object& object) {
  List& list = ListOf(object);
  CHECK(object.older != nullptr || list.oldest == &object) << object.info.id.ToHex() << " is not in the order";
  (object.older == nullptr ? list.oldest : object.older->newer) = object.newer;
  (object.newer == nullptr ? list.newest : object.newer->older) = object.older;
  object.older = object.newer = nullptr;
  --list.objects;
  list.bytes -= object.allocation.size;
}

void EvictionOrder::Touch(Object& object) {
  Remove(object);
  Add(object);
}

Object* EvictionOrder::Next() const {
  if (pulled_.oldest != nullptr) return pulled_.oldest;
  return keep_primary_ ? nullptr : created_here_.oldest;
}

uint64_t EvictionOrder::evictable_bytes() const { return pulled_.bytes + (keep_primary_ ? 0 : created_here_.bytes); }

absl::Status EvictionOrder::CheckConsistency() const {
  if (absl::Status s = Check(pulled_, Origin::kPulled); !s.ok()) return s;
  return Check(created_here_, Origin::kCreatedHere);
}

absl::Status EvictionOrder::Check(const List& list, Origin origin) {
  uint64_t objects = 0, bytes = 0;
  const Object* older = nullptr;
  for (const Object* object = list.oldest; object != nullptr; older = object, object = object->newer) {
    const std::string id = object->info.id.ToHex();
    if (object->older != older) return absl::InternalError(absl::StrCat(id, " does not know its neighbour"));
    if (object->info.origin != origin) return absl::InternalError(absl::StrCat(id, " is in the wrong list"));
    if (!object->sealed() || object->info.pins != 0)
      return absl::InternalError(absl::StrCat(id, " may not be evicted"));
    ++objects;
    bytes += object->allocation.size;
  }
  if (older != list.newest || objects != list.objects || bytes != list.bytes) {
    return absl::InternalError("an eviction list does not add up");
  }
  return absl::OkStatus();
}

}  // namespace tokamak::store
