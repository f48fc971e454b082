// NicState is what the protocol of a queue pair needs of the NIC around it: keys, packets out,
// alarms, turns.
//
// Thread rule: under the NIC's mutex.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device_options.h"
#include "lib/verbs/soft/state/alarm.h"
#include "lib/verbs/soft/state/completion_ring.h"
#include "lib/verbs/soft/state/counters.h"
#include "lib/verbs/soft/state/memory.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/outbox.h"
#include "lib/verbs/soft/state/secret_numbers.h"

namespace tokamak::verbs::soft {

class QueuePairCore;
class SharedReceives;

// A queue pair's places in the lists of its NicState.
struct QueuePairTurns {
  using Link = base::Link<QueuePairTurns>;

  explicit QueuePairTurns(QueuePairCore& owner) : queue_pair(owner) {}

  QueuePairCore& queue_pair;
  Link ready;
  Link answers;
  Link patient;
  Link notifies;
  Link waits_for_reads;
  Link waits_for_first_read;
  Link waits_to_send;
  Link touched;
  Link departing;
};

// Queue pairs that wait for something, first come first served; one that waits already keeps its
// place.
template <QueuePairTurns::Link QueuePairTurns::*kLink>
class QueuePairList final {
 public:
  void Add(QueuePairTurns& turns) {
    if (!list_.Listed(&turns)) list_.PushBack(&turns);
  }
  void AddFirst(QueuePairTurns& turns) {
    if (!list_.Listed(&turns)) list_.PushFront(&turns);
  }
  void Remove(QueuePairTurns& turns) {
    if (list_.Listed(&turns)) list_.Remove(&turns);
  }
  QueuePairCore* TakeFirst() { return list_.empty() ? nullptr : &list_.PopFront()->queue_pair; }  // null when empty
  bool empty() const { return list_.empty(); }
  size_t size() const { return list_.size(); }

 private:
  base::IntrusiveList<QueuePairTurns, kLink> list_;
};

// Bytes of READ answers that may be on their way to this NIC at once, over all queue pairs: more
// would overrun the port.
//
// A part is kept for queue pairs that have nothing outstanding, so that peers that do not answer,
// and hold what they took until their time-out, leave the others something. Once someone was
// refused there is no room for its kind until something is given back: so whoever waits is asked in
// turn, and a thousand that wait cost nothing meanwhile.
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

// Packets of requests that may be unacknowledged at once, over all queue pairs of this NIC. Each
// queue pair has a window of its own, but what it sends meets the others' in one buffer, at the
// peer or before it, which a thousand windows would overrun.
//
// Where the window is taken and nothing is given back for NicState::kSendStall, a queue pair that has
// none unacknowledged may send one packet all the same: so dead peers, which hold what they took
// until it is overdue, cannot block the others.
class SendBudget final {
 public:
  // Before the first request.
  void set_window(uint64_t packets) { window_ = packets; }

  bool room() const { return used_ < window_; }
  // More is taken than left: soon somebody has to wait for what acknowledgements give back.
  bool scarce() const { return used_ > window_ - used_; }

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

class NicState final {
 public:
  static constexpr base::Duration kSendStall = base::Milliseconds(1);
  static constexpr uint32_t kPatientAcknowledgements = 16;

  // `options` outlive the nic_state.
  NicState(base::EventLoop& loop, base::Trace& trace, const DeviceOptions& options, const SecretNumbers& key_numbers,
           std::function<void()> wake_up, base::Task on_timer);

  const DeviceOptions& options;

  KeyTable keys GUARDED_BY_NIC_MUTEX;
  Outbox outbox GUARDED_BY_NIC_MUTEX;
  AlarmClock alarms GUARDED_BY_NIC_MUTEX;
  ReadBudget reads GUARDED_BY_NIC_MUTEX;
  SendBudget sends GUARDED_BY_NIC_MUTEX;
  // May have something to send.
  QueuePairList<&QueuePairTurns::ready> ready GUARDED_BY_NIC_MUTEX;
  // Owe an acknowledgement or a NAK that nothing has to go before: these go first, since a peer may
  // be waiting for them with its window full.
  QueuePairList<&QueuePairTurns::answers> answers GUARDED_BY_NIC_MUTEX;
  // Owe an acknowledgement that waits for something to go with, see DeviceOptions::ack_delay.
  QueuePairList<&QueuePairTurns::patient> patient GUARDED_BY_NIC_MUTEX;
  // Owe a congestion notification.
  QueuePairList<&QueuePairTurns::notifies> notifiers GUARDED_BY_NIC_MUTEX;
  // Wait for `reads`; their turn comes before that of those that are ready. Those with nothing
  // outstanding are apart.
  QueuePairList<&QueuePairTurns::waits_for_reads> read_waiters GUARDED_BY_NIC_MUTEX;
  QueuePairList<&QueuePairTurns::waits_for_first_read> first_read_waiters GUARDED_BY_NIC_MUTEX;
  // Wait for `sends`; the same.
  QueuePairList<&QueuePairTurns::waits_to_send> send_waiters GUARDED_BY_NIC_MUTEX;
  // Received something in this turn, to be settled at its end.
  QueuePairList<&QueuePairTurns::touched> touched GUARDED_BY_NIC_MUTEX;
  // Have packets in the outbox and want to know when they have left it.
  QueuePairList<&QueuePairTurns::departing> departing GUARDED_BY_NIC_MUTEX;
  std::vector<CompletionRing*> unpublished GUARDED_BY_NIC_MUTEX;
  std::vector<CompletionRing*> overrun GUARDED_BY_NIC_MUTEX;  // just died; their queue pairs have to follow
  DeviceCounters counters GUARDED_BY_NIC_MUTEX;

  // What the connection manager wants to know of watched queue pairs, see ManagementHandler.
  std::function<void(uint32_t number)> on_first_data;
  std::function<void(uint32_t number)> on_error;

  // Fewer receives are left than their owner wants.
  std::function<void(SharedReceives& receives)> on_receive_limit;

  void Push(CompletionRing& ring, const Completion& completion, uint64_t* released, uint64_t release,
            bool solicited) REQUIRES_NIC_MUTEX {
    if (!ring.Push(completion, released, release, solicited)) overrun.push_back(&ring);
    if (ring.unpublished) return;
    ring.unpublished = true;
    unpublished.push_back(&ring);
  }

  // This queue pair was refused by `reads`. Whoever had its turn because it waited stays the next.
  void WaitForReads(QueuePairTurns& turns, bool first) REQUIRES_NIC_MUTEX {
    const auto wait = [&](auto& waiters) REQUIRES_NIC_MUTEX {
      if (&turns.queue_pair == read_turn_) {
        waiters.AddFirst(turns);
      } else {
        waiters.Add(turns);
      }
    };
    if (first) {
      wait(first_read_waiters);
    } else {
      wait(read_waiters);
    }
  }

  // A packet that nobody takes.
  void Drop(const Packet& packet, uint64_t* counter) REQUIRES_NIC_MUTEX {
    ++*counter;
    Trace(base::TraceKind::kPacketDropped, packet.psn, 0);
  }

  // `turns` are those of a queue pair that is going away.
  void Forget(QueuePairTurns& turns) REQUIRES_NIC_MUTEX {
    ready.Remove(turns);
    answers.Remove(turns);
    patient.Remove(turns);
    notifiers.Remove(turns);
    read_waiters.Remove(turns);
    first_read_waiters.Remove(turns);
    send_waiters.Remove(turns);
    touched.Remove(turns);
    departing.Remove(turns);
  }

  // This queue pair owes an acknowledgement that may wait.
  void AnswerSoon(QueuePairTurns& turns) REQUIRES_NIC_MUTEX {
    patient.Add(turns);
    if (++patience_used_ >= kPatientAcknowledgements) return AnswerPatient();
    if (!patience_.set()) patience_.Set(options.ack_delay);
  }
  // Those that wait go with what leaves now.
  void AnswerPatient() REQUIRES_NIC_MUTEX;

  // This queue pair was refused by `sends`.
  void WaitToSend(QueuePairTurns& turns, bool first) REQUIRES_NIC_MUTEX {
    send_waiters.Add(turns);
    if (!first || stall_.set()) return;
    given_back_seen_ = sends.given_back();
    stall_.Set(kSendStall);
  }

  // The next queue pair that is to send, or null.
  QueuePairCore* TakeNext() REQUIRES_NIC_MUTEX {
    read_turn_ = nullptr;
    if (sends.room() && !send_waiters.empty()) return send_waiters.TakeFirst();
    if (reads.room(true) && !first_read_waiters.empty()) return read_turn_ = first_read_waiters.TakeFirst();
    if (reads.room(false) && !read_waiters.empty()) return read_turn_ = read_waiters.TakeFirst();
    return ready.TakeFirst();
  }
  bool anyone_next() const REQUIRES_NIC_MUTEX {
    return !ready.empty() || !answers.empty() || (sends.room() && !send_waiters.empty()) ||
           (reads.room(true) && !first_read_waiters.empty()) || (reads.room(false) && !read_waiters.empty());
  }

  bool tracing() const { return tracing_; }
  void Trace(base::TraceKind kind, uint32_t number, uint64_t size) REQUIRES_NIC_MUTEX {
    if (tracing_) trace_.Record({alarms.now(), kind, options.trace_node, number, size});
  }

 private:
  void OnStall() REQUIRES_NIC_MUTEX;

  QueuePairCore* read_turn_ GUARDED_BY_NIC_MUTEX = nullptr;  // has its turn because it waited for `reads`
  uint64_t given_back_seen_ GUARDED_BY_NIC_MUTEX = 0;        // of `sends`, when stall_ was set
  Alarm stall_ GUARDED_BY_NIC_MUTEX;
  uint32_t patience_used_ GUARDED_BY_NIC_MUTEX = 0;  // acknowledgements since `patient` was empty
  Alarm patience_ GUARDED_BY_NIC_MUTEX;
  base::Trace& trace_ GUARDED_BY_NIC_MUTEX;
  const bool tracing_;  // spares a call for each packet where nobody looks
};

}  // namespace tokamak::verbs::soft
