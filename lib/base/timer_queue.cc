#include "lib/base/timer_queue.h"

#include <glog/logging.h>

#include <utility>

namespace tokamak::base {

uint64_t TimerQueue::Add(Time time, uint64_t order, Task task) {
  const uint32_t slot = ClaimSlot();
  slots_[slot].task = std::move(task);
  slots_[slot].held = true;
  heap_.emplace_back();
  SiftUp(heap_.size() - 1, Key{time, order, slot});
  return slots_[slot].generation << kSlotBits | slot;
}

void TimerQueue::Remove(uint64_t ticket) {
  if (!Contains(ticket)) return;
  const uint32_t slot = static_cast<uint32_t>(ticket & (kMaxTasks - 1));
  RemoveAt(slots_[slot].link);
  const Task dropped = ReleaseSlot(slot);  // destroyed last, when the queue is whole again
}

bool TimerQueue::Contains(uint64_t ticket) const {
  const size_t slot = ticket & (kMaxTasks - 1);
  return slot < slots_.size() && slots_[slot].held && slots_[slot].generation == ticket >> kSlotBits;
}

Task TimerQueue::Take() {
  DCHECK(!heap_.empty());
  const uint32_t slot = heap_.front().slot;
  RemoveAt(0);
  return ReleaseSlot(slot);
}

void TimerQueue::Clear() {
  while (!heap_.empty()) {
    const uint32_t slot = heap_.back().slot;
    heap_.pop_back();
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

void TimerQueue::RemoveAt(size_t position) {
  const Key last = heap_.back();
  heap_.pop_back();
  if (position == heap_.size()) return;
  if (position > 0 && Before(last, heap_[(position - 1) / 2])) {
    SiftUp(position, last);
  } else {
    SiftDown(position, last);
  }
}

void TimerQueue::Place(size_t position, const Key& key) {
  heap_[position] = key;
  slots_[key.slot].link = static_cast<uint32_t>(position);
}

void TimerQueue::SiftUp(size_t position, const Key& key) {
  while (position > 0) {
    const size_t parent = (position - 1) / 2;
    if (!Before(key, heap_[parent])) break;
    Place(position, heap_[parent]);
    position = parent;
  }
  Place(position, key);
}

void TimerQueue::SiftDown(size_t position, const Key& key) {
  for (;;) {
    size_t child = 2 * position + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && Before(heap_[child + 1], heap_[child])) ++child;
    if (!Before(heap_[child], key)) break;
    Place(position, heap_[child]);
    position = child;
  }
  Place(position, key);
}

}  // namespace tokamak::base
