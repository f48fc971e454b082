// TimerQueue keeps the tasks of one event loop in the order to run: by time, then in the order
// added.
//
// A heap of small keys over an array of slots. A ticket names a slot and the slot's generation, so
// the ticket of a task that has run or was cancelled is stale for ever: a slot whose generations
// are used up is retired. Most timers are cancelled, or run and are set again. So the key of a
// removed task stays in the heap until it comes first, or until half of all keys are stale, and the
// key of a taken task gives its place to the next one added.
//
// Adding and taking cost O(log n), removing O(1) on average; they allocate only while the queue
// grows beyond any size it has had.
//
// Law: all times held at once lie less than 106 days apart, since Time compares as a serial number
// (time.h).
// Thread rule: one thread, the loop's. Tasks may be destroyed inside Remove and Clear; their
// destructors may call the queue, and find it consistent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/containers/quad_heap.h"
#include "lib/base/event_loop.h"
#include "lib/base/time.h"

namespace tokamak::base {

class TimerQueue final {
 public:
  // The most tasks held at once.
  static constexpr size_t kMaxTasks = size_t{1} << 24;

  TimerQueue() = default;
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  // Keeps `task` for `time`. `order` decides among equal times: the smaller goes first; no two
  // tasks may have the same. Returns a ticket, which is never 0 and never given again.
  uint64_t Add(Time time, uint64_t order, Task&& task);

  // Removes the task of `ticket`. No effect if it was taken or removed before.
  void Remove(uint64_t ticket);

  // True from Add until Take or Remove.
  bool Contains(uint64_t ticket) const;

  bool empty() const { return held_ == 0; }
  size_t size() const { return held_; }

  // Time and order of the first task. The queue must not be empty.
  Time next_time() { return First().time; }
  uint64_t next_order() { return First().order; }

  // Removes the first task and returns it. The queue must not be empty.
  Task Take();

  // Removes all tasks, also those that destructors of removed ones add.
  void Clear();

 private:
  struct Key {
    bool Before(const Key& other) const { return time != other.time ? time < other.time : order < other.order; }

    Time time;
    uint64_t order;
    uint64_t ticket;
  };
  // One cache line.
  struct alignas(64) Slot {
    Task task;
    uint64_t ticket = 0;  // of its task; 0: it has none
    uint64_t generation = 1;
    uint32_t next_free = 0;
  };

  static constexpr int kSlotBits = 24;
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  static constexpr uint64_t kLastGeneration = (uint64_t{1} << (64 - kSlotBits)) - 1;
  static_assert(kMaxTasks == size_t{1} << kSlotBits, "a ticket holds a slot's number and its generation");

  // The least stale keys worth a sweep.
  static constexpr size_t kFewStale = 64;

  static uint32_t SlotOf(uint64_t ticket) { return static_cast<uint32_t>(ticket & (kMaxTasks - 1)); }
  bool Stale(const Key& key) const { return slots_[SlotOf(key.ticket)].ticket != key.ticket; }
  const Key& First();
  void Sweep();
  uint32_t ClaimSlot();
  Task ReleaseSlot(uint32_t slot);

  std::vector<Slot> slots_;
  QuadHeap<Key> heap_;   // keys of all tasks, and stale ones
  size_t held_ = 0;      // tasks
  bool vacant_ = false;  // true if the heap's first key is that of a task that was taken
  uint32_t free_ = kNoSlot;
};

}  // namespace tokamak::base
