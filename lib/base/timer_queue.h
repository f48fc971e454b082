// TimerQueue keeps the tasks of one event loop in the order in which they are to run: by time, then
// by the order asked.
//
// A heap of small keys over an array of slots. A ticket names a slot and the slot's generation, so
// a ticket of a task that has run or was cancelled is known to be stale for ever: a slot whose
// generations are used up is retired. Adding and removing take O(log n) and allocate only while the
// queue grows beyond any size it has had.
//
// Law: all times held at once lie less than 106 days apart, since Time compares as a serial number
// (time.h).
// Thread rule: one thread, the loop's. Tasks may be destroyed inside Remove and Clear; what their
// destructors call on the queue finds it consistent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/indexed_heap.h"
#include "lib/base/time.h"

namespace tokamak::base {

class TimerQueue final {
 public:
  // The most tasks held at once.
  static constexpr size_t kMaxTasks = size_t{1} << 24;

  TimerQueue() : heap_(InOrder{&slots_}) {}
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  // Keeps `task` for `time`. `order` decides among equal times: the smaller goes first; no two
  // tasks may have the same. Returns a ticket, which is never 0 and never given again.
  uint64_t Add(Time time, uint64_t order, Task task);

  // Forgets the task of `ticket`. Does nothing when it was taken or removed before.
  void Remove(uint64_t ticket);

  // True from Add until Take or Remove.
  bool Contains(uint64_t ticket) const;

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }

  // Of the task that is first. The queue must not be empty.
  Time next_time() const { return heap_.front().time; }
  uint64_t next_order() const { return heap_.front().order; }

  // Removes the first task and returns it. The queue must not be empty.
  Task Take();

  // Forgets all tasks, also those that destructors of forgotten ones add.
  void Clear();

 private:
  struct Key {
    Time time;
    uint64_t order;
    uint32_t slot;
  };
  struct Slot {
    Task task;
    uint64_t generation = 1;
    uint32_t link = 0;  // position in the heap while it holds a task, else the next free slot
    bool held = false;
  };

  static constexpr int kSlotBits = 24;
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  static constexpr uint64_t kLastGeneration = (uint64_t{1} << (64 - kSlotBits)) - 1;
  static_assert(kMaxTasks == size_t{1} << kSlotBits, "a ticket holds a slot's number and its generation");

  struct InOrder {
    std::vector<Slot>* slots;
    bool Before(const Key& a, const Key& b) const { return a.time != b.time ? a.time < b.time : a.order < b.order; }
    void Place(const Key& key, size_t position) const { (*slots)[key.slot].link = static_cast<uint32_t>(position); }
  };

  uint32_t ClaimSlot();
  Task ReleaseSlot(uint32_t slot);

  std::vector<Slot> slots_;
  IndexedHeap<Key, InOrder> heap_;
  uint32_t free_ = kNoSlot;
};

}  // namespace tokamak::base
