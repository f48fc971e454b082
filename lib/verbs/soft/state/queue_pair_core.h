// QueuePairCore is a queue pair as the NIC sees it, whatever it speaks: its number, its rings, its
// state and its turns. ConnectedCore speaks the reliable connection, DatagramCore datagrams.
//
// The owner's half (SoftQueuePair, SoftDatagramQueuePair) shares the rings, the state and the
// doorbell flag.
//
// Law: in Error nothing of the owner's memory is sent or written, and every request posted is
// flushed, in order.
// Thread rule: under the NIC's mutex, but for what says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/state/completion_ring.h"
#include "lib/verbs/soft/state/counters.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/nic_state.h"
#include "lib/verbs/soft/state/shared_receives.h"
#include "lib/verbs/soft/state/work_queue.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

class ConnectedCore;

// What a queue pair is made of, whatever it speaks.
struct QueuePairParts {
  uint32_t number = 0;
  DomainId domain = 0;
  uint16_t source_port = 0;  // UDP, of what it sends
  std::shared_ptr<CompletionRing> send_ring;
  std::shared_ptr<CompletionRing> receive_ring;
  std::shared_ptr<SharedReceives> shared_receives;  // null: it has receives of its own
  uint32_t max_receive_requests = 0;                // of its own
  uint32_t max_sges = 0;                            // of each of these
};

class QueuePairCore {
 public:
  virtual ~QueuePairCore() REQUIRES_NIC_MUTEX;
  QueuePairCore(const QueuePairCore&) = delete;
  QueuePairCore& operator=(const QueuePairCore&) = delete;

  // Fixed for life.
  uint32_t number() const { return parts_.number; }
  DomainId domain() const { return parts_.domain; }
  uint16_t source_port() const { return parts_.source_port; }
  CompletionRing& send_ring() const { return *parts_.send_ring; }
  CompletionRing& receive_ring() const { return *parts_.receive_ring; }
  SharedReceives* shared_receives() const { return parts_.shared_receives.get(); }

  // Null unless it is one.
  virtual ConnectedCore* connected() { return nullptr; }

  // As of the last step.
  QueuePairState state() const { return state_.load(std::memory_order_seq_cst); }  // any thread
  bool failed() const { return state() == QueuePairState::kError; }

  // To Error: the send queue's (or the receive queue's) oldest request ends with the status given,
  // all the rest is flushed.
  virtual void Fail(CompletionStatus send_status, CompletionStatus receive_status,
                    uint32_t provider_code) REQUIRES_NIC_MUTEX = 0;

  // Its completions that wait are never polled. The owner's thread calls.
  virtual void ForgetCompletions() REQUIRES_NIC_MUTEX = 0;

  // A packet that names it. What is none of its business it drops and counts.
  virtual void Receive(const Packet& packet) REQUIRES_NIC_MUTEX = 0;

  // Once per turn in which it received something and asked for this, after the last packet.
  virtual void FinishTurn() REQUIRES_NIC_MUTEX {}

  // The owner rang: new requests, or receives posted in Error.
  virtual void Answer() REQUIRES_NIC_MUTEX = 0;

  // Adds packets to the outbox, at most a fair share. True when it has more that could go at once.
  virtual bool Emit() REQUIRES_NIC_MUTEX = 0;

  // Adds the acknowledgement or NAK that is owed, where nothing has to go before it.
  virtual void EmitAnswer() REQUIRES_NIC_MUTEX {}

  // Sends the congestion notification that is owed. Returns false, with the queue pair first in
  // line again, when the port does not take it.
  virtual bool Notify(Port& /*port*/) REQUIRES_NIC_MUTEX { return true; }

  // Some of its packets have left the outbox: the port took them, or they were taken out.
  virtual void OnDeparture() REQUIRES_NIC_MUTEX {}

  // Bits per second; 0: not limited.
  virtual uint64_t rate() const REQUIRES_NIC_MUTEX { return 0; }

  void MarkReady() REQUIRES_NIC_MUTEX { nic_state_.ready.Add(turns_); }
  void MarkAnswer() REQUIRES_NIC_MUTEX { nic_state_.answers.Add(turns_); }

  QueuePairCounters counters GUARDED_BY_NIC_MUTEX;
  ReceiveQueue receives;

  // The doorbell: set while the queue pair is in the NIC's list of those that rang. Any thread.
  std::atomic<bool> doorbell_rung{false};
  QueuePairCore* next_doorbell = nullptr;

  // The connection manager's interest.
  bool watched GUARDED_BY_NIC_MUTEX = false;

 protected:
  QueuePairCore(NicState& nic_state, QueuePairParts parts);

  void Enter(QueuePairState state) REQUIRES_NIC_MUTEX;

  // A packet on its way to `peer`, as fabrics write it.
  Packet& AddPacketTo(const Address& peer, PacketOpcode opcode) REQUIRES_NIC_MUTEX {
    ++counters.packets_sent;
    Packet& packet = nic_state_.outbox.Add(number());
    packet.opcode = opcode;
    packet.peer = peer;
    packet.source_port = source_port();
    return packet;
  }

  NicState& nic_state_;
  QueuePairTurns turns_{*this};

 private:
  const QueuePairParts parts_;
  std::atomic<QueuePairState> state_{QueuePairState::kInit};
};

}  // namespace tokamak::verbs::soft
