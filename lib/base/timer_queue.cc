#include "lib/base/timer_queue.h"

#include <utility>

#include "lib/base/check.h"

namespace tokamak::base {

uint64_t TimerQueue::Add(Time time, uint64_t order, Task&& task) {
  const uint32_t number = ClaimSlot();
  Slot& slot = slots_[number];
  slot.task = std::move(task);
  slot.ticket = slot.generation << kSlotBits | number;
  ++held_;
  const Key key{time, order, slot.ticket};
  if (vacant_) {
    vacant_ = false;
    heap_.ReplaceFront(key);
  } else {
    heap_.Push(key);
  }
  return key.ticket;
}

void TimerQueue::Remove(uint64_t ticket) {
  if (!Contains(ticket)) return;
  const Task dropped = ReleaseSlot(SlotOf(ticket));  // destroyed last, with the queue whole again
  if (heap_.size() > 2 * held_ + kFewStale) Sweep();
}

bool TimerQueue::Contains(uint64_t ticket) const {
  const size_t slot = SlotOf(ticket);
  return ticket != 0 && slot < slots_.size() && slots_[slot].ticket == ticket;
}

Task TimerQueue::Take() {
  DCHECK(!empty());
  const uint32_t slot = SlotOf(First().ticket);
  vacant_ = true;
  return ReleaseSlot(slot);
}

void TimerQueue::Clear() {
  while (!empty()) {
    const uint32_t slot = SlotOf(First().ticket);
    const Task dropped = ReleaseSlot(slot);
  }
}

const TimerQueue::Key& TimerQueue::First() {
  while (vacant_ || Stale(heap_.front())) {
    vacant_ = false;
    heap_.PopFront();
  }
  return heap_.front();
}

void TimerQueue::Sweep() {
  vacant_ = false;  // its key is stale, too
  heap_.RemoveIf([this](const Key& key) { return Stale(key); });
}

uint32_t TimerQueue::ClaimSlot() {
  if (free_ == kNoSlot) {
    CHECK_LT(slots_.size(), kMaxTasks) << "too many timers at once";
    slots_.emplace_back();
    return static_cast<uint32_t>(slots_.size() - 1);
  }
  return std::exchange(free_, slots_[free_].next_free);
}

Task TimerQueue::ReleaseSlot(uint32_t number) {
  Slot& slot = slots_[number];
  slot.ticket = 0;
  --held_;
  if (slot.generation != kLastGeneration) {
    ++slot.generation;
    slot.next_free = free_;
    free_ = number;
  }
  return std::exchange(slot.task, nullptr);
}

}  // namespace tokamak::base
