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
  void AddFirst(QueuePairCore& queue_pair);
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
// Once someone was refused there is no room for its kind until something is given back: so whoever waits is asked in turn, and
// a thousand that wait cost nothing meanwhile.
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
    if (used_ > 0 && (used_ > limit || bytes > limit - used_)) {
      refused_[first] = true;
      return false;
    }
    used_ += bytes;
    return true;
  }
  void GiveBack(uint64_t bytes) {
    if (bytes == 0) return;
    used_ -= bytes;
    refused_[false] = refused_[true] = false;
  }

  // False: the next of this kind would be refused too, or go before one that was.
  bool room(bool first) const { return !refused_[first]; }

  uint64_t window() const { return window_; }

 private:
  uint64_t window_ = UINT64_MAX;
  uint64_t used_ = 0;
  bool refused_[2] = {};  // by `first`, since something was given back
};

// Packets of requests that may be unacknowledged at once, over all queue pairs of this NIC. Each queue pair has a window of its
// own, but what it sends meets the others' in one buffer, at the peer or before it, which a thousand windows would overrun.
//
// Where the window is taken and nothing is given back for Engine::kSendStall, a queue pair that has none unacknowledged may send
// one packet all the same: so dead peers, which hold what they took until it is overdue, cannot block the others.
class SendBudget final {
 public:
  // Before the first request.
  void set_window(uint64_t packets) { window_ = packets; }

  bool room() const { return used_ < window_; }

  // One packet. `first`: the queue pair has none unacknowledged.
  bool Take(bool first) {
    if (!room() && !(first && stalled_)) return false;
    ++used_;
    return true;
  }
  void GiveBack(uint64_t packets) {
    if (packets == 0) return;
    used_ -= packets;
    given_back_ += packets;
    stalled_ = false;
  }

  uint64_t given_back() const { return given_back_; }  // ever
  // Nothing was given back for long; ends with the next GiveBack.
  void Stall() { stalled_ = true; }

 private:
  uint64_t window_ = UINT64_MAX;
  uint64_t used_ = 0;
  uint64_t given_back_ = 0;
  bool stalled_ = false;
};

class Engine final {
 public:
  static constexpr base::Duration kSendStall = base::Milliseconds(1);

  Engine(base::EventLoop& loop, base::Trace& trace, uint32_t trace_node, base::Random key_random,
         std::function<void()> wake_up, base::Task on_timer);

  KeyTable keys;
  Outbox outbox;
  AlarmClock alarms;
  ReadBudget reads;
  SendBudget sends;
  QueuePairList ready;               // may have something to send
  QueuePairList read_waiters;        // wait for `reads`; their turn comes before that of those that are ready
  QueuePairList first_read_waiters;  // the same, with nothing outstanding
  QueuePairList send_waiters;        // wait for `sends`, the same
  QueuePairList touched;             // received something in this turn, to be settled at its end
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

  // `queue_pair` was refused by `reads`. Whoever had its turn because it waited stays the next.
  void WaitForReads(QueuePairCore& queue_pair, bool first) {
    QueuePairList& waiters = first ? first_read_waiters : read_waiters;
    if (&queue_pair == read_turn_) {
      waiters.AddFirst(queue_pair);
    } else {
      waiters.Add(queue_pair);
    }
  }

  // `queue_pair` was refused by `sends`.
  void WaitToSend(QueuePairCore& queue_pair, bool first) {
    send_waiters.Add(queue_pair);
    if (!first || stall_.set()) return;
    given_back_seen_ = sends.given_back();
    stall_.Set(kSendStall);
  }

  // The next queue pair that is to send, or null.
  QueuePairCore* TakeNext() {
    read_turn_ = nullptr;
    if (sends.room() && !send_waiters.empty()) return send_waiters.TakeFirst();
    if (reads.room(true) && !first_read_waiters.empty()) return read_turn_ = first_read_waiters.TakeFirst();
    if (reads.room(false) && !read_waiters.empty()) return read_turn_ = read_waiters.TakeFirst();
    return ready.TakeFirst();
  }
  bool anyone_next() const {
    return !ready.empty() || (sends.room() && !send_waiters.empty()) ||
           (reads.room(true) && !first_read_waiters.empty()) || (reads.room(false) && !read_waiters.empty());
  }

  bool tracing() const { return tracing_; }
  void Trace(base::TraceKind kind, uint32_t number, uint64_t size) {
    if (tracing_) trace_.Record({alarms.now(), kind, trace_node_, number, size});
  }

 private:
  void OnStall();

  QueuePairCore* read_turn_ = nullptr;  // has its turn because it waited for `reads`
  uint64_t given_back_seen_ = 0;        // of `sends`, when stall_ was set
  Alarm stall_;
  base::Trace& trace_;
  const bool tracing_;  // spares a call for each packet where nobody looks
  const uint32_t trace_node_;
};

}  // namespace tokamak::verbs::soft
