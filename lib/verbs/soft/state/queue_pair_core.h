// QueuePairCore is a queue pair as the NIC sees it: number, rings, state and turns. ConnectedCore
// speaks the reliable connection, DatagramCore datagrams.
//
// SoftQueuePair and SoftDatagramQueuePair, the owner's half, share rings, state and doorbell.
// Law: in Error none of the owner's memory is sent or written, and every posted request is flushed,
// in order.
// Thread rule: the NIC's mutex, except where a member says otherwise.
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

struct QueuePairParts {
  uint32_t number = 0;
  DomainId domain = 0;
  uint16_t source_port = 0;  // UDP, of its packets
  std::shared_ptr<CompletionRing> send_ring;
  std::shared_ptr<CompletionRing> receive_ring;
  std::shared_ptr<SharedReceives> shared_receives;  // null: it has receives of its own
  uint32_t max_receive_requests = 0;                // its own
  uint32_t max_sges = 0;                            // of each of these
};

class QueuePairCore {
 public:
  virtual ~QueuePairCore() REQUIRES_NIC_MUTEX;
  QueuePairCore(const QueuePairCore&) = delete;
  QueuePairCore& operator=(const QueuePairCore&) = delete;

  // Fixed.
  uint32_t number() const { return parts_.number; }
  DomainId domain() const { return parts_.domain; }
  uint16_t source_port() const { return parts_.source_port; }
  CompletionRing& send_ring() const { return *parts_.send_ring; }
  CompletionRing& receive_ring() const { return *parts_.receive_ring; }
  SharedReceives* shared_receives() const { return parts_.shared_receives.get(); }

  // Returns null for a DatagramCore.
  virtual ConnectedCore* connected() { return nullptr; }

  QueuePairState state() const { return state_.load(std::memory_order_seq_cst); }  // any thread
  bool failed() const { return state() == QueuePairState::kError; }

  // Ends the oldest request of each queue with the status given for it, and flushes the others.
  virtual void Fail(CompletionStatus send_status, CompletionStatus receive_status,
                    uint32_t provider_code) REQUIRES_NIC_MUTEX = 0;

  // Drops completions that wait, so that they are never polled. Called on the owner's thread.
  virtual void ForgetCompletions() REQUIRES_NIC_MUTEX = 0;

  // Takes a packet; drops and counts one that is not for it.
  virtual void Receive(const Packet& packet) REQUIRES_NIC_MUTEX = 0;

  // Runs once at the end of a turn in which it received something and asked for this.
  virtual void FinishTurn() REQUIRES_NIC_MUTEX {}

  // Answers the doorbell: new requests, or receives posted in Error.
  virtual void Answer() REQUIRES_NIC_MUTEX = 0;

  // Adds at most a fair share of packets to the outbox. Returns true if more could go at once.
  virtual bool Emit() REQUIRES_NIC_MUTEX = 0;

  // Adds an acknowledgement or NAK, if nothing has to go before it.
  virtual void EmitAnswer() REQUIRES_NIC_MUTEX {}

  // Sends a congestion notification. Returns false if the port is busy; then the queue pair is
  // first in line again.
  virtual bool Notify(Port& /*port*/) REQUIRES_NIC_MUTEX { return true; }

  // Notes that packets left the outbox, to the port or taken out.
  virtual void OnDeparture() REQUIRES_NIC_MUTEX {}

  // Returns bits per second; 0: no bound.
  virtual uint64_t rate() const REQUIRES_NIC_MUTEX { return 0; }

  void MarkReady() REQUIRES_NIC_MUTEX { nic_state_.ready.Add(turns_); }
  void MarkAnswer() REQUIRES_NIC_MUTEX { nic_state_.answers.Add(turns_); }

  QueuePairCounters counters GUARDED_BY_NIC_MUTEX;
  ReceiveQueue receives;

  // The doorbell: true while the queue pair is in the NIC's list of those that rang. Any thread.
  std::atomic<bool> doorbell_rung{false};
  QueuePairCore* next_doorbell = nullptr;

  // True if the connection manager wants news.
  bool watched GUARDED_BY_NIC_MUTEX = false;

 protected:
  QueuePairCore(NicState& nic_state, QueuePairParts parts);

  void Enter(QueuePairState state) REQUIRES_NIC_MUTEX;

  // Adds a packet to `peer`, as fabrics write it.
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
