// QueuePairCore is a queue pair as the NIC sees it: its rings, its state, and the two halves of its
// protocol.
//
// The owner's half is SoftQueuePair (queue_pair.h); the two share the rings, the state and the
// doorbell flag.
//
// Law: in Error nothing of the owner's memory is sent or written, and every request posted is
// flushed, in order.
// Thread rule: under the NIC's mutex, but for what says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "lib/verbs/soft/completion_ring.h"
#include "lib/verbs/soft/congestion.h"
#include "lib/verbs/soft/counters.h"
#include "lib/verbs/soft/engine.h"
#include "lib/verbs/soft/nic_mutex.h"
#include "lib/verbs/soft/packet.h"
#include "lib/verbs/soft/requester.h"
#include "lib/verbs/soft/responder.h"
#include "lib/verbs/soft/shared_receives.h"
#include "lib/verbs/soft/wire.h"
#include "lib/verbs/soft/work_queue.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

class QueuePairCore final {
 public:
  QueuePairCore(Engine& engine, uint32_t number, DomainId domain, const QueuePairOptions& options,
                std::shared_ptr<CompletionRing> send_ring, std::shared_ptr<CompletionRing> receive_ring,
                std::shared_ptr<SharedReceives> shared_receives, std::unique_ptr<Congestion> congestion,
                uint16_t source_port);
  ~QueuePairCore();

  // Fixed for life.
  uint32_t number() const { return number_; }
  DomainId domain() const { return domain_; }
  Asker asker() const REQUIRES_NIC_MUTEX { return {domain_, life_}; }
  uint16_t source_port() const { return source_port_; }
  CompletionRing& send_ring() const { return *send_ring_; }
  CompletionRing& receive_ring() const { return *receive_ring_; }
  SharedReceives* shared_receives() const { return shared_receives_.get(); }  // null: it has receives of its own

  // As of the last step.
  QueuePairState state() const { return state_.load(std::memory_order_seq_cst); }  // any thread
  const Address& peer() const REQUIRES_NIC_MUTEX { return attributes_.peer; }      // as fabrics write it
  uint32_t peer_number() const REQUIRES_NIC_MUTEX { return attributes_.peer_number; }
  uint32_t mtu() const REQUIRES_NIC_MUTEX { return attributes_.path_mtu; }
  Access remote_access() const REQUIRES_NIC_MUTEX { return attributes_.remote_access; }
  const ReliabilityOptions& reliability() const REQUIRES_NIC_MUTEX { return attributes_.reliability; }

  // Whether it has taken anything that its peer sent, since it became ready to receive.
  bool heard() const REQUIRES_NIC_MUTEX { return taken() > taken_before_; }

  // A step as QueuePair::Modify describes it. `active_mtu` bounds the path MTU, `max_reads` the
  // READ depths.
  absl::Status Modify(QueuePairState state, const QueuePairAttributes& attributes,
                      const Limits& limits) REQUIRES_NIC_MUTEX;

  // To Error: the send queue's (or the receive queue's) oldest request ends with the status given,
  // all the rest is flushed.
  void Fail(CompletionStatus send_status, CompletionStatus receive_status, uint32_t provider_code) REQUIRES_NIC_MUTEX;
  bool failed() const { return state() == QueuePairState::kError; }

  // Its completions that wait are never polled. The owner's thread calls.
  void ForgetCompletions() REQUIRES_NIC_MUTEX;

  // A packet of this queue pair's peer.
  void Receive(const Packet& packet) REQUIRES_NIC_MUTEX;

  // Once per turn in which it received something, after the last packet.
  void FinishTurn() REQUIRES_NIC_MUTEX;

  // The owner rang: new requests, or receives posted in Error.
  void Answer() REQUIRES_NIC_MUTEX;

  // Adds packets to the outbox, at most a fair share. True when it has more that could go at once.
  bool Emit() REQUIRES_NIC_MUTEX;

  // Adds the acknowledgement or NAK that is owed, where nothing has to go before it.
  void EmitAnswer() REQUIRES_NIC_MUTEX { responder_.EmitAnswer(); }

  // Sends the congestion notification that is owed. Returns false, with the queue pair first in
  // line again, when the port does not take it.
  bool Notify(Port& port) REQUIRES_NIC_MUTEX;

  // False: the rate allows no packet yet; the queue pair will be ready when it does.
  bool MaySend() REQUIRES_NIC_MUTEX { return !paces_ || Pace(); }

  // `packet`, whole, has been added to the outbox.
  void OnSend(const Packet& packet) REQUIRES_NIC_MUTEX {
    if (paces_) congestion_->OnSend(engine_.alarms.now(), EthernetBytes(packet));
  }

  // When the rate lets the next packet leave; not before now.
  base::Time NextSend() REQUIRES_NIC_MUTEX {
    const base::Time now = engine_.alarms.now();
    return paces_ && rate() != 0 ? std::max(now, congestion_->NextSend(now)) : now;
  }

  // Bits per second; 0: not limited.
  uint64_t rate() const REQUIRES_NIC_MUTEX { return congestion_->rate(); }

  // A packet on its way to the peer.
  Packet& AddPacket(PacketOpcode opcode, uint64_t sequence) REQUIRES_NIC_MUTEX;

  void MarkReady() REQUIRES_NIC_MUTEX { engine_.ready.Add(turns_); }
  void MarkAnswer() REQUIRES_NIC_MUTEX { engine_.answers.Add(turns_); }
  void MarkPatientAnswer() REQUIRES_NIC_MUTEX { engine_.AnswerSoon(turns_); }
  void WaitForReads(bool first) REQUIRES_NIC_MUTEX { engine_.WaitForReads(turns_, first); }
  void WaitToSend(bool first) REQUIRES_NIC_MUTEX { engine_.WaitToSend(turns_, first); }

  QueuePairCounters counters GUARDED_BY_NIC_MUTEX;
  SendQueue sends;
  ReceiveQueue receives;

  // The doorbell: set while the queue pair is in the NIC's list of those that rang. Any thread.
  std::atomic<bool> doorbell_rung{false};
  QueuePairCore* next_doorbell = nullptr;

  // The connection manager's interest.
  bool watched GUARDED_BY_NIC_MUTEX = false;

 private:
  uint64_t taken() const REQUIRES_NIC_MUTEX { return counters.answers_taken + counters.requests_executed; }
  void Enter(QueuePairState state) REQUIRES_NIC_MUTEX;
  absl::Status ToInit(const QueuePairAttributes& attributes) REQUIRES_NIC_MUTEX;
  absl::Status ToReadyToReceive(const QueuePairAttributes& attributes, const Limits& limits) REQUIRES_NIC_MUTEX;
  absl::Status ToReadyToSend(const QueuePairAttributes& attributes, const Limits& limits) REQUIRES_NIC_MUTEX;
  void ToReset() REQUIRES_NIC_MUTEX;
  bool Pace() REQUIRES_NIC_MUTEX;
  void OnMarked(const Packet& packet) REQUIRES_NIC_MUTEX;

  Engine& engine_;
  const uint32_t number_;
  const DomainId domain_;
  QueuePairLife life_ GUARDED_BY_NIC_MUTEX;
  const uint16_t source_port_;
  const std::shared_ptr<CompletionRing> send_ring_;
  const std::shared_ptr<CompletionRing> receive_ring_;
  const std::shared_ptr<SharedReceives> shared_receives_;
  const std::unique_ptr<Congestion> congestion_ GUARDED_BY_NIC_MUTEX;
  const bool paces_;
  const Ecn ecn_;  // of what it sends
  std::atomic<QueuePairState> state_{QueuePairState::kInit};
  QueuePairAttributes attributes_ GUARDED_BY_NIC_MUTEX;

  Requester requester_ GUARDED_BY_NIC_MUTEX;
  Responder responder_ GUARDED_BY_NIC_MUTEX;

  uint64_t taken_before_ GUARDED_BY_NIC_MUTEX = 0;  // by earlier connections
  bool notified_ GUARDED_BY_NIC_MUTEX = false;      // ever, and when last
  base::Time notified_at_ GUARDED_BY_NIC_MUTEX;
  Alarm pace_ GUARDED_BY_NIC_MUTEX;

  QueuePairTurns turns_{*this};
};

}  // namespace tokamak::verbs::soft
