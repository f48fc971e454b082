// Alarms: many deadlines of the NIC behind one timer of its loop.
//
// Time-outs move far more often than they expire, and owners' threads, which may not touch the
// loop, set some. So a deadline is a field; moving it later costs nothing until the earlier time
// comes. Thread rule: under the NIC's mutex. Set and Cancel from any thread; Begin, Fire and End on
// the NIC's.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/base/containers/indexed_heap.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/state/nic_mutex.h"

namespace tokamak::verbs::soft {

class AlarmClock;

// One deadline. Dropping it cancels. Its clock outlives it.
class Alarm final {
 public:
  // `on_due` runs on the NIC's thread, under its mutex, and may set and drop any alarm.
  Alarm(AlarmClock& clock, base::Task on_due) : clock_(clock), on_due_(std::move(on_due)) {}
  ~Alarm() REQUIRES_NIC_MUTEX { Forget(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Makes it due once, `delay` from now, in place of an earlier setting. On another thread than the
  // NIC's the delay counts from the NIC's next turn.
  void Set(base::Duration delay) REQUIRES_NIC_MUTEX;
  void Cancel() REQUIRES_NIC_MUTEX { set_ = false; }
  bool set() const REQUIRES_NIC_MUTEX { return set_; }

 private:
  friend class AlarmClock;

  void Forget() REQUIRES_NIC_MUTEX;

  AlarmClock& clock_;
  const base::Task on_due_;
  bool set_ GUARDED_BY_NIC_MUTEX = false;
  bool relative_ GUARDED_BY_NIC_MUTEX = false;  // true if `delay_` counts from the next Begin
  bool listed_ GUARDED_BY_NIC_MUTEX = false;    // true if in AlarmClock::relative_
  base::Duration delay_ GUARDED_BY_NIC_MUTEX;
  base::Time deadline_ GUARDED_BY_NIC_MUTEX;
  size_t queued_at_ GUARDED_BY_NIC_MUTEX = SIZE_MAX;  // its index in AlarmClock::queue_
};

class AlarmClock final {
 public:
  // `wake_up` asks for a turn from any thread; `on_timer` starts one on the NIC's.
  AlarmClock(base::EventLoop& loop, std::function<void()> wake_up, base::Task on_timer)
      : loop_(loop), wake_up_(std::move(wake_up)), on_timer_(std::move(on_timer)) {}

  // A turn: Begin, Fire, its work, End.
  void Begin() REQUIRES_NIC_MUTEX;
  void Fire() REQUIRES_NIC_MUTEX;
  void End() REQUIRES_NIC_MUTEX;

  // Returns the time of this turn; only between Begin and End.
  base::Time now() const REQUIRES_NIC_MUTEX { return now_; }

 private:
  friend class Alarm;

  // Equal times fire in the order set. An entry may be earlier than its alarm's deadline.
  struct Entry {
    base::Time time;
    uint64_t order;
    Alarm* alarm;
  };
  struct InOrder {
    bool Before(const Entry& a, const Entry& b) const { return a.time != b.time ? a.time < b.time : a.order < b.order; }
    // By queue_ alone, which is guarded.
    void Place(const Entry& entry, size_t at) const ABSL_NO_THREAD_SAFETY_ANALYSIS { entry.alarm->queued_at_ = at; }
  };
  using Queue = base::IndexedHeap<Entry, InOrder>;

  void Enqueue(Alarm& alarm) REQUIRES_NIC_MUTEX;

  base::EventLoop& loop_;
  const std::function<void()> wake_up_;
  const base::Task on_timer_;
  bool in_turn_ GUARDED_BY_NIC_MUTEX = false;
  base::Time now_ GUARDED_BY_NIC_MUTEX;
  uint64_t next_order_ GUARDED_BY_NIC_MUTEX = 0;
  Queue queue_ GUARDED_BY_NIC_MUTEX;
  std::vector<Alarm*> relative_ GUARDED_BY_NIC_MUTEX;
  base::Timer timer_ GUARDED_BY_NIC_MUTEX;
  base::Time timer_time_ GUARDED_BY_NIC_MUTEX;
};

}  // namespace tokamak::verbs::soft
