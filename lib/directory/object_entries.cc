#include "lib/directory/object_entries.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::directory {

namespace {

template <typename Entry>
auto Place(Entry& entry, uint64_t member) {
  return std::lower_bound(entry.holders.begin(), entry.holders.end(), member,
                          [](const Holder& holder, uint64_t number) { return holder.member < number; });
}

}  // namespace

ObjectEntry* ObjectEntries::Find(const base::ObjectId& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return nullptr;
  auto& holders = found->second.holders;
  const auto counts = [this](const Holder& holder) { return !IsGone(holder); };
  holders.erase(holders.begin(), std::find_if(holders.begin(), holders.end(), counts));
  if (!holders.empty()) return &found->second;
  entries_.erase(found);
  return nullptr;
}

ObjectEntry& ObjectEntries::Add(const base::ObjectVersion& version, uint64_t data_size, uint64_t metadata_size) {
  const auto [added, is_new] = entries_.try_emplace(version.id);
  CHECK(is_new);
  ObjectEntry& entry = added->second;
  entry.generation = version.generation;
  entry.data_size = data_size;
  entry.metadata_size = metadata_size;
  return entry;
}

ObjectEntry ObjectEntries::Extract(const base::ObjectId& id) {
  auto entry = entries_.extract(id);
  CHECK(!entry.empty());
  return std::move(entry.mapped());
}

Holder* ObjectEntries::FindHolder(ObjectEntry& entry, uint64_t member) {
  const auto place = Place(entry, member);
  return place != entry.holders.end() && place->member == member ? &*place : nullptr;
}

void ObjectEntries::Enter(ObjectEntry& entry, uint64_t member, bool has) {
  if (Holder* known = FindHolder(entry, member)) {
    known->has = known->has | has;
  } else {
    entry.holders.insert(Place(entry, member), Holder{member, has});
  }
}

void ObjectEntries::Remove(const base::ObjectId& id, uint64_t member) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  ObjectEntry& entry = found->second;
  if (const Holder* holder = FindHolder(entry, member)) entry.holders.erase(holder);
  if (entry.holders.empty()) entries_.erase(found);
}

bool ObjectEntries::IsHeld(const ObjectEntry& entry) const {
  return std::any_of(entry.holders.begin(), entry.holders.end(),
                     [this](const Holder& holder) { return Alive(holder) != nullptr; });
}

const Member* ObjectEntries::Alive(const Holder& holder) const {
  const Member* member = holder.has ? members_.Find(holder.member) : nullptr;
  return member != nullptr && member->alive ? member : nullptr;
}

LocatedObject ObjectEntries::Name(ObjectEntry& entry) const {
  LocatedObject info{entry.generation, entry.data_size, entry.metadata_size, {}};
  info.name = entry.name;
  const size_t count = entry.holders.size();
  size_t looked = 0;
  for (; looked < count && info.holders.size() < kMaxHoldersNamed; ++looked) {
    const Member* member = Alive(entry.holders[(entry.turn + looked) % count]);
    if (member != nullptr) info.holders.push_back(member->info.id);
  }
  if (count > 0) entry.turn = static_cast<uint32_t>((entry.turn + looked) % count);
  return info;
}

std::vector<base::ObjectVersion> ObjectEntries::HeldBy(uint64_t member, size_t most,
                                                       std::optional<base::ObjectId>* looked_at) const {
  std::vector<base::ObjectVersion> held;
  auto entry = looked_at->has_value() ? entries_.upper_bound(**looked_at) : entries_.begin();
  for (size_t looked = 0; looked < kForgottenAtOnce && held.size() < most && entry != entries_.end(); ++looked) {
    const auto place = Place(entry->second, member);
    const bool holds = place != entry->second.holders.end() && place->member == member;
    if (holds) held.push_back({entry->first, entry->second.generation});
    *looked_at = entry->first;
    ++entry;
  }
  if (entry == entries_.end()) looked_at->reset();
  return held;
}

bool ObjectEntries::Forget(bool first) {
  auto entry = first ? entries_.begin() : entries_.upper_bound(forgotten_);
  for (size_t looked = 0; looked < kForgottenAtOnce && entry != entries_.end(); ++looked) {
    forgotten_ = entry->first;
    auto& holders = entry->second.holders;
    looked += holders.size() / kHoldersAsOne;
    const auto gone =
        std::remove_if(holders.begin(), holders.end(), [this](const Holder& holder) { return IsGone(holder); });
    holders.erase(gone, holders.end());
    entry = holders.empty() ? entries_.erase(entry) : std::next(entry);
  }
  return entry != entries_.end();
}

}  // namespace tokamak::directory
