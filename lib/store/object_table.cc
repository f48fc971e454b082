#include "lib/store/object_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::store {
namespace {

bool MayEnter(State from, State to) {
  switch (from) {
    case State::kCreated:
      return to == State::kSealed || to == State::kAborted;
    case State::kSealed:
      return to == State::kEvicted || to == State::kDeleted;
    case State::kEvicted:
    case State::kDeleted:
    case State::kAborted:
      return false;
  }
  return false;
}

void Add(uint64_t& counter, int64_t sign, uint64_t amount = 1) { counter += sign > 0 ? amount : -amount; }

}  // namespace

const char* StateName(State state) {
  switch (state) {
    case State::kCreated:
      return "created";
    case State::kSealed:
      return "sealed";
    case State::kEvicted:
      return "evicted";
    case State::kDeleted:
      return "deleted";
    case State::kAborted:
      return "aborted";
  }
  return "unknown";
}

Object* ObjectTable::Find(const base::ObjectId& id) {
  const auto it = objects_.find(id);
  return it == objects_.end() ? nullptr : it->second.get();
}

const Object* ObjectTable::Find(const base::ObjectId& id) const {
  const auto it = objects_.find(id);
  return it == objects_.end() ? nullptr : it->second.get();
}

Object& ObjectTable::Insert(StoredObject info, Owner creator, const Allocation& allocation) {
  CHECK(info.state == State::kCreated);
  const base::ObjectId id = info.id;
  auto object = std::make_unique<Object>();
  object->info = std::move(info);
  object->info.pins = 0;
  object->creator = creator;
  object->allocation = allocation;
  object->account = &programs_.Of(creator);
  programs_.AddObject(*object->account);
  const auto [it, inserted] = objects_.emplace(id, std::move(object));
  CHECK(inserted) << "two records for " << id.ToHex();
  Object& added = *it->second;
  unsealed_.insert({creator, id});
  programs_.AddUnsealed(creator, added.info.location.total_size());
  ++counts_.created;
  counts_.name_bytes += added.info.name.memory();
  Count(added, +1);
  return added;
}

void ObjectTable::Enter(Object& object, State state) {
  StoredObject& info = object.info;
  CHECK(MayEnter(info.state, state)) << info.id.ToHex() << " cannot be " << StateName(state) << ": it is "
                                     << StateName(info.state);
  if (info.state == State::kCreated) {
    unsealed_.erase({object.creator, info.id});
    programs_.RemoveUnsealed(object.creator, info.location.total_size());
  }
  Count(object, -1);
  info.state = state;
  Count(object, +1);

  EvictionCount& evicted = info.origin == Origin::kPulled ? counts_.evicted_pulled : counts_.evicted_created_here;
  if (state == State::kSealed) ++counts_.sealed;
  if (state == State::kAborted) ++counts_.aborted;
  if (state == State::kDeleted) ++counts_.deleted;
  if (state == State::kEvicted) evicted += EvictionCount{1, info.location.total_size()};
}

void ObjectTable::Keep(Object& object) {
  Count(object, -1);
  object.info.origin = Origin::kCreatedHere;
  Count(object, +1);
}

void ObjectTable::Erase(Object& object) {
  CHECK(object.lingers()) << object.info.id.ToHex() << " would be lost";
  CHECK_EQ(object.info.pins, 0u) << object.info.id.ToHex() << " is pinned";
  Count(object, -1);
  counts_.name_bytes -= object.info.name.memory();
  programs_.RemoveObject(*object.account);
  objects_.erase(objects_.find(object.info.id));
}

void ObjectTable::Pin(Object& object, Owner who) {
  if (++pins_[{who, object.info.id}] == 1) {
    programs_.AddPinned(who, object.info.location.total_size());
  }
  if (object.info.pins++ == 0) ++counts_.pinned_objects;
  ++counts_.pins;
}

bool ObjectTable::Unpin(Object& object, Owner who) {
  const auto it = pins_.find({who, object.info.id});
  if (it == pins_.end()) return false;
  if (--it->second == 0) {
    pins_.erase(it);
    programs_.RemovePinned(who, object.info.location.total_size());
  }
  if (--object.info.pins == 0) --counts_.pinned_objects;
  --counts_.pins;
  return true;
}

std::vector<base::ObjectId> ObjectTable::PinnedBy(Owner who) const {
  std::vector<base::ObjectId> ids;
  for (auto it = pins_.lower_bound({who, base::ObjectId()}); it != pins_.end() && it->first.first == who; ++it) {
    ids.insert(ids.end(), it->second, it->first.second);
  }
  return ids;
}

std::vector<base::ObjectId> ObjectTable::UnsealedOf(Owner who) const {
  std::vector<base::ObjectId> ids;
  for (auto it = unsealed_.lower_bound({who, base::ObjectId()}); it != unsealed_.end() && it->first == who; ++it) {
    ids.push_back(it->second);
  }
  return ids;
}

std::vector<const Object*> ObjectTable::List(const base::ObjectId* after, size_t limit) const {
  std::vector<const Object*> objects;
  for (auto it = after == nullptr ? objects_.begin() : objects_.upper_bound(*after);
       it != objects_.end() && objects.size() < limit; ++it) {
    objects.push_back(it->second.get());
  }
  return objects;
}

void ObjectTable::Count(const Object& object, int64_t sign) {
  const uint64_t bytes = object.info.location.total_size();
  switch (object.info.state) {
    case State::kCreated:
      Add(counts_.unsealed_objects, sign);
      Add(counts_.unsealed_bytes, sign, bytes);
      Add(object.account->usage.unsealed_bytes, sign, bytes);
      return;
    case State::kSealed:
      Add(counts_.sealed_objects, sign);
      Add(counts_.sealed_bytes, sign, bytes);
      if (object.info.origin == Origin::kPulled) return;
      Add(counts_.kept_objects, sign);
      Add(counts_.kept_bytes, sign, bytes);
      Add(object.account->usage.kept_bytes, sign, bytes);
      return;
    case State::kEvicted:
    case State::kDeleted:
    case State::kAborted:
      Add(counts_.lingering_objects, sign);
      Add(counts_.lingering_bytes, sign, bytes);
      return;
  }
}

absl::Status ObjectTable::CheckConsistency() const {
  uint64_t unsealed = 0, sealed = 0, lingering = 0, pinned = 0, pins = 0, name_bytes = 0;
  for (const auto& [id, object] : objects_) {
    const StoredObject& info = object->info;
    if (info.id != id) return absl::InternalError(absl::StrCat(id.ToHex(), " is filed under a wrong id"));
    if (info.state == State::kCreated) {
      ++unsealed;
      if (!unsealed_.contains({object->creator, id})) {
        return absl::InternalError(absl::StrCat(id.ToHex(), " is unsealed, but its creator does not know"));
      }
    }
    if (info.state == State::kSealed) ++sealed;
    if (object->lingers()) {
      ++lingering;
      if (info.pins == 0) return absl::InternalError(absl::StrCat(id.ToHex(), " lingers for nobody"));
    }
    pinned += info.pins != 0;
    pins += info.pins;
    name_bytes += info.name.memory();
  }
  if (unsealed != counts_.unsealed_objects || sealed != counts_.sealed_objects ||
      lingering != counts_.lingering_objects || unsealed != unsealed_.size()) {
    return absl::InternalError("the objects do not add up");
  }
  if (name_bytes != counts_.name_bytes) return absl::InternalError("the names do not add up");
  if (pinned != counts_.pinned_objects || pins != counts_.pins) return absl::InternalError("the pins do not add up");

  absl::btree_map<base::ObjectId, uint64_t> claimed;
  uint64_t pinned_bytes = 0;
  for (const auto& [claim, count] : pins_) claimed[claim.second] += count;
  for (const auto& [id, count] : claimed) {
    const Object* object = Find(id);
    if (object == nullptr) return absl::InternalError(absl::StrCat(id.ToHex(), " is pinned, but not there"));
    if (object->info.pins != count) return absl::InternalError(absl::StrCat(id.ToHex(), ": its pins do not add up"));
  }
  for (const auto& [claim, count] : pins_) pinned_bytes += Find(claim.second)->info.location.total_size();
  OwnerUsage all;
  for (const OwnerUsage& one : programs_.usage()) all += one;
  if (all.unsealed_bytes != counts_.unsealed_bytes || all.kept_bytes != counts_.kept_bytes ||
      all.pinned_bytes != pinned_bytes) {
    return absl::InternalError("what the programs hold does not add up");
  }
  if (claimed.size() != pinned) return absl::InternalError("an object has pins that nobody holds");
  if (counts_.lost() != 0) return absl::InternalError(absl::StrCat(counts_.lost(), " objects are lost"));
  return absl::OkStatus();
}

}  // namespace tokamak::store
