// AnswerClock measures how long answers to a requester's packets take. An answer is late twice:
// overdue, after a time that Congestion learns from measured round trips, and timed out, after the
// time that both sides agreed on.
//
// The agreed time goes on while overdue answers are asked for again. The overdue time doubles after
// each one without a measured round trip, and ends where the agreed time would come first.
//
// Law: one packet at a time is measured, and only one that was sent once: the answer to another may
// be that to its first try.
// Thread rule: under the NIC's mutex.
#pragma once

#include <cstdint>

#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/congestion/congestion.h"
#include "lib/verbs/soft/state/alarm.h"
#include "lib/verbs/soft/state/nic_mutex.h"

namespace tokamak::verbs::soft {

class AnswerClock final {
 public:
  // `alarms` and `congestion` must outlive it. `pause`: see DeviceOptions::pause. The tasks run as
  // those of alarms.
  AnswerClock(AlarmClock& alarms, Congestion& congestion, base::Duration pause, base::Task on_timeout,
              base::Task on_overdue);

  // Begins a new connection, with nothing awaited.
  void Start() REQUIRES_NIC_MUTEX;

  // Notes that the oldest unacknowledged packet is sent. An agreed time that runs goes on.
  void Run(base::Duration agreed) REQUIRES_NIC_MUTEX;

  // Begins both times again: an answer came, and others are awaited.
  void RunAgain(base::Duration agreed) REQUIRES_NIC_MUTEX;

  void Stop() REQUIRES_NIC_MUTEX;
  // Each stops one of both times.
  void StopTimeout() REQUIRES_NIC_MUTEX { timeout_.Cancel(); }
  void StopOverdue() REQUIRES_NIC_MUTEX { overdue_.Cancel(); }

  // Begins to measure the round trip of packet `sequence`, sent now for the first time, unless
  // another's is.
  void Measure(uint64_t sequence) REQUIRES_NIC_MUTEX {
    if (measuring_) return;
    measuring_ = true;
    measured_ = sequence;
    sent_at_ = alarms_.now();
  }

  // Reports the round trip to `congestion` if the packet was acknowledged.
  void OnAcknowledged(uint64_t unacked) REQUIRES_NIC_MUTEX;

  // Packets are sent again.
  void ForgetRoundTrip() REQUIRES_NIC_MUTEX { measuring_ = false; }

  // Counts an overdue answer. Returns false, and puts it off once, if the NIC came too late itself:
  // answers that came meanwhile may not have been looked at.
  [[nodiscard]] bool CountOverdue() REQUIRES_NIC_MUTEX;

 private:
  void SetOverdue(base::Duration agreed) REQUIRES_NIC_MUTEX;

  AlarmClock& alarms_;
  Congestion& congestion_;
  const base::Duration pause_;
  Alarm timeout_;
  Alarm overdue_;
  uint32_t overdue_in_a_row_ = 0;  // since the last measured round trip
  base::Time overdue_at_;          // when overdue_ should come due
  bool excused_ = false;           // true if it came due too late, and was put off once
  bool measuring_ = false;         // true while the round trip of `measured_`, sent at `sent_at_`, is measured
  uint64_t measured_ = 0;
  base::Time sent_at_;
};

}  // namespace tokamak::verbs::soft
