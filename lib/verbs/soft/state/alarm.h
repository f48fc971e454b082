// Alarms: many deadlines of the NIC behind one timer of its loop.
//
// Time-outs of a NIC are set and moved far more often than they come due, and an owner's thread
// must be able to set one (a connection's deadline, say) although only the NIC's thread may touch
// the loop. So a deadline is a field; a move to a later time costs nothing until the earlier one
// comes due.
//
// Thread rule: everything is under the NIC's mutex. Set and Cancel from any thread; Begin, Fire and
// End are the NIC's.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/base/containers/indexed_heap.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/state/nic_mutex.h"

namespace tokamak::verbs::soft {

class AlarmClock;

// One deadline. Dropping it cancels. Neither copied nor moved; must not outlive its clock.
class Alarm final {
 public:
  // `on_due` runs on the NIC's thread, under the NIC's mutex. It may set and drop any alarm, this
  // one too.
  Alarm(AlarmClock& clock, base::Task on_due) : clock_(clock), on_due_(std::move(on_due)) {}
  ~Alarm() REQUIRES_NIC_MUTEX { Forget(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Due once, `delay` from now; replaces what was set. Set outside of the NIC's thread, it counts
  // from the NIC's next turn.
  void Set(base::Duration delay) REQUIRES_NIC_MUTEX;
  void Cancel() REQUIRES_NIC_MUTEX { set_ = false; }
  bool set() const REQUIRES_NIC_MUTEX { return set_; }

 private:
  friend class AlarmClock;

  void Forget() REQUIRES_NIC_MUTEX;

  AlarmClock& clock_;
  const base::Task on_due_;
  bool set_ GUARDED_BY_NIC_MUTEX = false;
  bool relative_ GUARDED_BY_NIC_MUTEX = false;  // `delay_` counts from the clock's next Begin
  bool listed_ GUARDED_BY_NIC_MUTEX = false;    // in AlarmClock::relative_
  base::Duration delay_ GUARDED_BY_NIC_MUTEX;
  base::Time deadline_ GUARDED_BY_NIC_MUTEX;
  size_t queued_at_ GUARDED_BY_NIC_MUTEX = SIZE_MAX;  // where in AlarmClock::queue_, as its heap says it
};

class AlarmClock final {
 public:
  // `wake_up` asks, from any thread, for a turn of the NIC soon; `on_timer` starts a turn on the
  // NIC's thread.
  AlarmClock(base::EventLoop& loop, std::function<void()> wake_up, base::Task on_timer)
      : loop_(loop), wake_up_(std::move(wake_up)), on_timer_(std::move(on_timer)) {}

  // A turn of the NIC: Begin, Fire, whatever it has to do, End.
  void Begin() REQUIRES_NIC_MUTEX;
  void Fire() REQUIRES_NIC_MUTEX;
  void End() REQUIRES_NIC_MUTEX;

  // The time of this turn; between Begin and End only.
  base::Time now() const REQUIRES_NIC_MUTEX { return now_; }

 private:
  friend class Alarm;

  // Equal times in the order in which they were set. An entry may be earlier than its alarm's
  // deadline.
  struct Entry {
    base::Time time;
    uint64_t order;
    Alarm* alarm;
  };
  struct InOrder {
    bool Before(const Entry& a, const Entry& b) const { return a.time != b.time ? a.time < b.time : a.order < b.order; }
    // Called by queue_ alone, which is guarded.
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
