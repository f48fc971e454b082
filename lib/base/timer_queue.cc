#include "lib/base/timer_queue.h"

#include <glog/logging.h>

#include <utility>

namespace tokamak::base {

uint64_t TimerQueue::Add(Time time, uint64_t order, Task task) {
  const uint32_t slot = ClaimSlot();
  slots_[slot].task = std::move(task);
  slots_[slot].held = true;
  heap_.Push(Key{time, order, slot});
  return slots_[slot].generation << kSlotBits | slot;
}

void TimerQueue::Remove(uint64_t ticket) {
  if (!Contains(ticket)) return;
  const uint32_t slot = static_cast<uint32_t>(ticket & (kMaxTasks - 1));
  heap_.Remove(slots_[slot].link);
  const Task dropped = ReleaseSlot(slot);  // destroyed last, when the queue is whole again
}

bool TimerQueue::Contains(uint64_t ticket) const {
  const size_t slot = ticket & (kMaxTasks - 1);
  return slot < slots_.size() && slots_[slot].held && slots_[slot].generation == ticket >> kSlotBits;
}

Task TimerQueue::Take() {
  DCHECK(!heap_.empty());
  const uint32_t slot = heap_.front().slot;
  heap_.Remove(0);
  return ReleaseSlot(slot);
}

void TimerQueue::Clear() {
  while (!heap_.empty()) {
    const uint32_t slot = heap_.back().slot;
    heap_.Remove(heap_.size() - 1);
    const Task dropped = ReleaseSlot(slot);
  }
}

uint32_t TimerQueue::ClaimSlot() {
  if (free_ == kNoSlot) {
    CHECK_LT(slots_.size(), kMaxTasks) << "too many timers at once";
    slots_.emplace_back();
    return static_cast<uint32_t>(slots_.size() - 1);
  }
  return std::exchange(free_, slots_[free_].link);
}

Task TimerQueue::ReleaseSlot(uint32_t slot) {
  Slot& s = slots_[slot];
  s.held = false;
  if (s.generation != kLastGeneration) {
    ++s.generation;
    s.link = free_;
    free_ = slot;
  }
  return std::exchange(s.task, nullptr);
}

}  // namespace tokamak::base
