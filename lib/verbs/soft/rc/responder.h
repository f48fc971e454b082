// Responder is the receiving half of a reliable connection: it carries requests out in order and
// answers.
//
// Only the expected packet is carried out. A duplicate is answered again but never carried out
// again, and a READ or atomic is answered only if it was served before (served_requests.h). After a
// gap the peer gets one NAK, and later packets are dropped until the expected one comes (9.7.5);
// with selective repeat they are kept, and each NAK says which packets are here.
//
// Answers go out in the order of the requests, READ data among them; acknowledgements of one turn
// become one packet. After a violation by the peer, requests before it are answered, then a NAK
// says why (again whenever the peer asks again), and the queue pair is in Error.
// Thread rule: the NIC's mutex.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/rc/held_packets.h"
#include "lib/verbs/soft/rc/response_queue.h"
#include "lib/verbs/soft/rc/served_requests.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/nic_state.h"
#include "lib/verbs/soft/state/outbox.h"
#include "lib/verbs/soft/state/receives.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

class ConnectedCore;

class Responder final {
 public:
  Responder(NicState& nic_state, ConnectedCore& queue_pair);

  // Starts in ReadyToReceive, at the peer's `psn`.
  void Start(uint32_t psn) REQUIRES_NIC_MUTEX;

  // Forgets receives, without completions, and why the connection ended. Called on the owner's
  // thread.
  void Reset() REQUIRES_NIC_MUTEX;

  // Completes the oldest receive with `first` and flushes the others.
  void Flush(CompletionStatus first) REQUIRES_NIC_MUTEX;

  void OnRequest(const Packet& packet) REQUIRES_NIC_MUTEX;

  void OnRequestInError(const Packet& packet) REQUIRES_NIC_MUTEX;

  bool Emit(Share* share) REQUIRES_NIC_MUTEX;
  void EmitAnswer() REQUIRES_NIC_MUTEX;

  // Acknowledges what was taken, before the queue pair ends.
  void AcknowledgeLast() REQUIRES_NIC_MUTEX;

 private:
  enum class Message : uint8_t { kNone, kSend, kWrite };
  // A reason to end the connection.
  struct Fault {
    uint8_t syndrome;
    uint64_t sequence;
    CompletionStatus receive_status;
  };

  // Carry out a request; return true if they did.
  bool Execute(const Packet& packet) REQUIRES_NIC_MUTEX;
  bool ExecuteSend(const Packet& packet) REQUIRES_NIC_MUTEX;
  bool ExecuteWrite(const Packet& packet) REQUIRES_NIC_MUTEX;
  bool ExecuteRead(const Packet& packet) REQUIRES_NIC_MUTEX;
  bool ExecuteAtomic(const Packet& packet) REQUIRES_NIC_MUTEX;
  bool FitsMessage(const Packet& packet, Message kind) REQUIRES_NIC_MUTEX;
  void Invalidate(uint32_t key) REQUIRES_NIC_MUTEX;
  void CompleteReceive(const Packet& packet, CompletionOpcode opcode, uint32_t byte_count) REQUIRES_NIC_MUTEX;

  void OnDuplicate(const Packet& packet, uint64_t sequence) REQUIRES_NIC_MUTEX;
  void OnGap(const Packet& packet, uint64_t sequence) REQUIRES_NIC_MUTEX;
  void Take(const Packet& packet) REQUIRES_NIC_MUTEX;
  void TakeHeld() REQUIRES_NIC_MUTEX;
  void OweAnswer() REQUIRES_NIC_MUTEX;
  bool AnswersFirst() const REQUIRES_NIC_MUTEX { return responses_.empty() && !fault_; }
  bool NotReady() REQUIRES_NIC_MUTEX;
  bool Refuse(uint8_t syndrome, CompletionStatus receive_status = CompletionStatus::kFlushed) REQUIRES_NIC_MUTEX;
  void End(const Fault& fault) REQUIRES_NIC_MUTEX;
  void Stop() REQUIRES_NIC_MUTEX;
  bool EmitResponse(Response& response, Share* share) REQUIRES_NIC_MUTEX;
  void RefuseResponse(const Response& response) REQUIRES_NIC_MUTEX;
  void EmitAcknowledge(uint8_t syndrome, uint64_t sequence) REQUIRES_NIC_MUTEX;

  NicState& nic_state_;
  ConnectedCore& queue_pair_;
  Receives receives_;

  bool running_ = false;
  uint64_t expected_ = 0;  // sequence
  uint32_t msn_ = 0;       // messages done, 24 bits

  // The arriving message.
  Message message_ = Message::kNone;
  uint32_t bytes_ = 0;  // so far
  uint64_t write_address_ = 0;
  uint32_t write_key_ = 0;
  uint32_t write_length_ = 0;

  // Owed.
  bool ack_due_ = false;
  uint8_t nak_due_ = 0;    // a syndrome, or 0
  bool gap_told_ = false;  // true: no NAK until expected_ comes
  HeldPackets held_;       // selective repeat: after expected_
  ResponseQueue responses_;
  std::optional<Fault> fault_;  // waits until the answers before it are gone
  std::optional<Fault> ended_;  // the NAK that ended the connection
  bool ended_due_ = false;
  uint64_t ended_due_at_ = 0;  // the sequence it names

  ServedRequests served_;
};

}  // namespace tokamak::verbs::soft
