#include "lib/verbs/ibv/posting/shared_slots.h"

#include <algorithm>

#include "lib/base/check.h"

namespace tokamak::verbs::ibv {

SharedSlots::SharedSlots(uint32_t depth) : depth_(depth), slots_(size_t{2} * depth) {
  for (size_t slot = slots_.size(); slot > 0; --slot) free_.push_back(static_cast<uint32_t>(slot - 1));
}

bool SharedSlots::Take(uint64_t id, uint32_t* slot) {
  if (posted_ - released_ >= depth_) return false;
  if (free_.empty()) Reclaim();
  if (free_.empty()) return false;
  *slot = free_.back();
  free_.pop_back();
  slots_[*slot] = {id, posted_++, true};
  return true;
}

void SharedSlots::Back(uint32_t slot) {
  CHECK_EQ(slots_[slot].order + 1, posted_);
  --posted_;
  slots_[slot].taken = false;
  free_.push_back(slot);
}

// The device gives receives out in order: none posted before one that has completed.
void SharedSlots::AddOwner(uint32_t number) { owners_[number] = released_; }

void SharedSlots::RemoveOwner(uint32_t number) {
  owners_.erase(number);
  Reclaim();
}

std::optional<uint64_t> SharedSlots::Release(uint32_t slot, uint32_t owner) {
  if (slot >= slots_.size() || !slots_[slot].taken) return std::nullopt;
  Slot& done = slots_[slot];
  released_ = std::max(released_, done.order + 1);
  if (const auto it = owners_.find(owner); it != owners_.end()) it->second = std::max(it->second, done.order + 1);
  done.taken = false;
  free_.push_back(slot);
  return done.id;
}

void SharedSlots::Reclaim() {
  uint64_t held_from = released_;
  for (const auto& [number, first] : owners_) held_from = std::min(held_from, first);
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot].taken || slots_[slot].order >= held_from) continue;
    slots_[slot].taken = false;
    free_.push_back(slot);
  }
}

}  // namespace tokamak::verbs::ibv
