#include "lib/verbs/ibv/shared_slots.h"

#include <glog/logging.h>

#include <algorithm>

namespace tokamak::verbs::ibv {

SharedSlots::SharedSlots(uint32_t depth) : depth_(depth), slots_(size_t{2} * depth) {
  for (size_t slot = slots_.size(); slot > 0; --slot) free_.push_back(static_cast<uint32_t>(slot - 1));
}

bool SharedSlots::Take(uint64_t id, uint32_t* slot) {
  if (free_.empty() || posted_ - released_ >= depth_) return false;
  *slot = free_.back();
  free_.pop_back();
  slots_[*slot] = {id, posted_++};
  return true;
}

void SharedSlots::Back(uint32_t slot) {
  CHECK_EQ(slots_[slot].order + 1, posted_);
  --posted_;
  free_.push_back(slot);
}

uint64_t SharedSlots::Release(uint32_t slot) {
  const Slot& done = slots_[slot];
  released_ = std::max(released_, done.order + 1);
  free_.push_back(slot);
  return done.id;
}

}  // namespace tokamak::verbs::ibv
