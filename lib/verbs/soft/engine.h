// Engine is what the protocol of a queue pair needs of the NIC around it: keys, packets out, alarms, turns.
//
// Thread rule: under the NIC's mutex.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/alarm.h"
#include "lib/verbs/soft/completion_ring.h"
#include "lib/verbs/soft/counters.h"
#include "lib/verbs/soft/memory.h"
#include "lib/verbs/soft/outbox.h"

namespace tokamak::verbs::soft {

class QueuePairCore;
class SharedReceives;

// A queue pair's place in a QueuePairList.
struct QueuePairLink {
  bool listed = false;
  QueuePairCore* next = nullptr;
  QueuePairCore* previous = nullptr;
};

// Queue pairs that wait for something, first come first served. A queue pair is in it at most once.
class QueuePairList final {
 public:
  // `link` says which of a queue pair's links is this list's.
  explicit QueuePairList(QueuePairLink QueuePairCore::*link) : link_(link) {}

  void Add(QueuePairCore& queue_pair);
  QueuePairCore* TakeFirst();  // null when empty
  void Remove(QueuePairCore& queue_pair);
  bool empty() const { return first_ == nullptr; }
  size_t size() const { return size_; }

 private:
  QueuePairLink QueuePairCore::*const link_;
  QueuePairCore* first_ = nullptr;
  QueuePairCore* last_ = nullptr;
  size_t size_ = 0;
};

// Bytes of READ answers that may be on their way to this NIC at once, over all queue pairs: more would overrun the port.
//
// A part is kept for queue pairs that have nothing outstanding, so that peers that do not answer, and hold what they took until
// their time-out, leave the others something.
// Law: used <= window, but for a single answer that is larger.
class ReadBudget final {
 public:
  // Of the window; a READ is cut in pieces that fit it.
  static constexpr uint64_t kReservedShare = 4;

  // Before the first READ.
  void set_window(uint64_t bytes) { window_ = bytes; }

  // `first`: the queue pair has nothing outstanding.
  bool Take(uint64_t bytes, bool first) {
    const uint64_t limit = first ? window_ : window_ - window_ / kReservedShare;
    if (used_ > 0 && (used_ > limit || bytes > limit - used_)) return false;
    used_ += bytes;
    return true;
  }
  void GiveBack(uint64_t bytes) { used_ -= bytes; }

  uint64_t window() const { return window_; }

 private:
  uint64_t window_ = UINT64_MAX;
  uint64_t used_ = 0;
};

// Packets of requests that may be unacknowledged at once, over all queue pairs of this NIC. Each queue pair has a window of its
// own, but what it sends meets the others' in one buffer, at the peer or before it, which a thousand windows would overrun.
class SendBudget final {
 public:
  // Before the first request.
  void set_window(uint64_t packets) { window_ = packets; }

  bool room() const { return used_ < window_; }

  // One packet. A queue pair that has none unacknowledged may always send one, so that a dead peer cannot block the others.
  bool Take(bool first) {
    if (!room() && !first) return false;
    ++used_;
    return true;
  }
  void GiveBack(uint64_t packets) { used_ -= packets; }

 private:
  uint64_t window_ = UINT64_MAX;
  uint64_t used_ = 0;
};

class Engine final {
 public:
  Engine(base::EventLoop& loop, base::Trace& trace, uint32_t trace_node, base::Random key_random,
         std::function<void()> wake_up, base::Task on_timer);

  KeyTable keys;
  Outbox outbox;
  AlarmClock alarms;
  ReadBudget reads;
  SendBudget sends;
  QueuePairList ready;         // may have something to send
  QueuePairList read_waiters;  // wait for `reads`
  QueuePairList send_waiters;  // wait for `sends`; their turn comes before that of those that are ready
  QueuePairList touched;       // received something in this turn, to be settled at its end
  std::vector<CompletionRing*> unpublished;
  std::vector<CompletionRing*> overrun;  // just died; their queue pairs have to follow
  DeviceCounters counters;

  // What the connection manager wants to know of watched queue pairs, see ManagementHandler.
  std::function<void(uint32_t number)> on_first_data;
  std::function<void(uint32_t number)> on_error;

  // Fewer receives are left than their owner wants.
  std::function<void(SharedReceives& receives)> on_receive_limit;

  void Push(CompletionRing& ring, const Completion& completion, uint64_t* released, uint64_t release, bool solicited) {
    if (!ring.Push(completion, released, release, solicited)) overrun.push_back(&ring);
    if (ring.unpublished) return;
    ring.unpublished = true;
    unpublished.push_back(&ring);
  }

  // Gives READ budget back, and those that wait for it their turn.
  void GiveBackReads(uint64_t bytes) {
    if (bytes == 0) return;
    reads.GiveBack(bytes);
    while (QueuePairCore* waiter = read_waiters.TakeFirst()) ready.Add(*waiter);
  }

  // The next queue pair that is to send, or null.
  QueuePairCore* TakeNext() {
    QueuePairCore* waiter = sends.room() ? send_waiters.TakeFirst() : nullptr;
    return waiter != nullptr ? waiter : ready.TakeFirst();
  }
  bool anyone_next() const { return !ready.empty() || (sends.room() && !send_waiters.empty()); }

  bool tracing() const { return tracing_; }
  void Trace(base::TraceKind kind, uint32_t number, uint64_t size) {
    if (tracing_) trace_.Record({alarms.now(), kind, trace_node_, number, size});
  }

 private:
  base::Trace& trace_;
  const bool tracing_;  // spares a call for each packet where nobody looks
  const uint32_t trace_node_;
};

}  // namespace tokamak::verbs::soft
