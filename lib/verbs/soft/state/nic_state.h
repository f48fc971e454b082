// NicState is what a queue pair needs of the NIC around it: keys, packets out, alarms, turns.
//
// Thread rule: the NIC's mutex.
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

// Queue pairs that wait for something, first come first served; adding one again keeps its place.
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
  QueuePairCore* TakeFirst() { return list_.empty() ? nullptr : &list_.PopFront()->queue_pair; }  // null: empty
  bool empty() const { return list_.empty(); }
  size_t size() const { return list_.size(); }

 private:
  base::IntrusiveList<QueuePairTurns, kLink> list_;
};

// Bytes of READ answers on their way to this NIC at once: more would overrun the port.
//
// A part is kept for queue pairs with nothing outstanding, since silent peers hold bytes until
// their time-out. After a refusal its kind has no room until bytes are given back: a thousand
// waiting queue pairs cost nothing meanwhile.
// Law: used <= window, except for a single larger answer.
class ReadBudget final {
 public:
  // 1 / kReservedShare is kept; a READ is cut in pieces that fit it.
  static constexpr uint64_t kReservedShare = 4;

  // Called before the first READ.
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

  // False if the next of this kind would be refused, or would overtake one that was.
  bool room(bool first) const { return !refused_[first]; }

  uint64_t window() const { return window_; }

 private:
  uint64_t window_ = UINT64_MAX;
  uint64_t used_ = 0;
  bool refused_[2] = {};  // by `first`, since the last GiveBack
};

// Packets of requests that may be unacknowledged at once. Each queue pair has a window of its own,
// but a thousand windows would overrun the one buffer at the peer or before it.
//
// If it is used up and nothing is given back for NicState::kSendStall, a queue pair with none
// unacknowledged may still send one: dead peers, which hold packets until they are overdue, cannot
// block the others.
class SendBudget final {
 public:
  // Called before the first request.
  void set_window(uint64_t packets) { window_ = packets; }

  bool room() const { return used_ < window_; }
  // True if more is taken than left: soon somebody must wait for acknowledgements.
  bool scarce() const { return used_ > window_ - used_; }

  // `first`: the queue pair has none unacknowledged.
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
  // Notes that nothing was given back for long, until the next GiveBack.
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

  // `options` outlive this.
  NicState(base::EventLoop& loop, base::Trace& trace, const DeviceOptions& options, const SecretNumbers& key_numbers,
           std::function<void()> wake_up, base::Task on_timer);

  const DeviceOptions& options;

  KeyTable keys GUARDED_BY_NIC_MUTEX;
  Outbox outbox GUARDED_BY_NIC_MUTEX;
  AlarmClock alarms GUARDED_BY_NIC_MUTEX;
  ReadBudget reads GUARDED_BY_NIC_MUTEX;
  SendBudget sends GUARDED_BY_NIC_MUTEX;
  // Queue pairs that may have something to send.
  QueuePairList<&QueuePairTurns::ready> ready GUARDED_BY_NIC_MUTEX;
  // Queue pairs that owe an acknowledgement or NAK with nothing before it. They go first, since a
  // peer may be waiting with its window full.
  QueuePairList<&QueuePairTurns::answers> answers GUARDED_BY_NIC_MUTEX;
  // Queue pairs whose acknowledgement may wait (DeviceOptions::ack_delay).
  QueuePairList<&QueuePairTurns::patient> patient GUARDED_BY_NIC_MUTEX;
  // Queue pairs that owe a congestion notification.
  QueuePairList<&QueuePairTurns::notifies> notifiers GUARDED_BY_NIC_MUTEX;
  // Queue pairs that wait for `reads`, before the ready ones; those with nothing outstanding have a
  // list of their own.
  QueuePairList<&QueuePairTurns::waits_for_reads> read_waiters GUARDED_BY_NIC_MUTEX;
  QueuePairList<&QueuePairTurns::waits_for_first_read> first_read_waiters GUARDED_BY_NIC_MUTEX;
  // Queue pairs that wait for `sends`, before the ready ones.
  QueuePairList<&QueuePairTurns::waits_to_send> send_waiters GUARDED_BY_NIC_MUTEX;
  // Queue pairs that received something, to be settled at the end of this turn.
  QueuePairList<&QueuePairTurns::touched> touched GUARDED_BY_NIC_MUTEX;
  // Queue pairs that want to know when their packets have left the outbox.
  QueuePairList<&QueuePairTurns::departing> departing GUARDED_BY_NIC_MUTEX;
  std::vector<CompletionRing*> unpublished GUARDED_BY_NIC_MUTEX;
  std::vector<CompletionRing*> overrun GUARDED_BY_NIC_MUTEX;  // just died; their queue pairs must follow
  DeviceCounters counters GUARDED_BY_NIC_MUTEX;

  // News for the connection manager, see ManagementHandler.
  std::function<void(uint32_t number)> on_first_data;
  std::function<void(uint32_t number)> on_error;

  // Runs when fewer receives are left than their owner wants.
  std::function<void(SharedReceives& receives)> on_receive_limit;

  void Push(CompletionRing& ring, const Completion& completion, uint64_t* released, uint64_t release,
            bool solicited) REQUIRES_NIC_MUTEX {
    if (!ring.Push(completion, released, release, solicited)) overrun.push_back(&ring);
    if (ring.unpublished) return;
    ring.unpublished = true;
    unpublished.push_back(&ring);
  }

  // Lists a queue pair that `reads` refused; one that had its turn because it waited stays first.
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

  void Drop(const Packet& packet, uint64_t* counter) REQUIRES_NIC_MUTEX {
    ++*counter;
    Trace(base::TraceKind::kPacketDropped, packet.psn, 0);
  }

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

  // Lists a queue pair whose acknowledgement may wait.
  void AnswerSoon(QueuePairTurns& turns) REQUIRES_NIC_MUTEX {
    patient.Add(turns);
    if (++patience_used_ >= kPatientAcknowledgements) return AnswerPatient();
    if (!patience_.set()) patience_.Set(options.ack_delay);
  }
  // Lets waiting acknowledgements leave with the packets now.
  void AnswerPatient() REQUIRES_NIC_MUTEX;

  // Lists one that `sends` refused.
  void WaitToSend(QueuePairTurns& turns, bool first) REQUIRES_NIC_MUTEX {
    send_waiters.Add(turns);
    if (!first || stall_.set()) return;
    given_back_seen_ = sends.given_back();
    stall_.Set(kSendStall);
  }

  // Returns null if there is none.
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

  QueuePairCore* read_turn_ GUARDED_BY_NIC_MUTEX = nullptr;  // the one that has its turn because it waited for `reads`
  uint64_t given_back_seen_ GUARDED_BY_NIC_MUTEX = 0;        // of `sends`, when stall_ was set
  Alarm stall_ GUARDED_BY_NIC_MUTEX;
  uint32_t patience_used_ GUARDED_BY_NIC_MUTEX = 0;  // acknowledgements since `patient` was empty
  Alarm patience_ GUARDED_BY_NIC_MUTEX;
  base::Trace& trace_ GUARDED_BY_NIC_MUTEX;
  const bool tracing_;  // false spares a call per packet
};

}  // namespace tokamak::verbs::soft
