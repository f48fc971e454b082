// Responder is the receiving half of a reliable connection: it takes requests in order, carries
// them out and answers.
//
// Only the packet that is expected is carried out. One from the past is a duplicate: it is answered
// again, never done again, and a READ or atomic only where it was served before
// (served_requests.h). One from the future shows a gap: the peer is told once, then all is
// dropped until the expected one comes. (9.7.5) With selective repeat it is kept instead, and the
// peer is told each time what is here.
//
// Answers go out in the order of the requests, READ data among them; acknowledgements of one turn
// become one packet. What a peer may not do ends the connection: the requests before are answered,
// then a NAK says why, then the queue pair is in Error. The NAK is repeated when the peer asks
// again.
//
// Thread rule: under the NIC's mutex.
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

  // ReadyToReceive: the peer's packets start at `psn`.
  void Start(uint32_t psn) REQUIRES_NIC_MUTEX;

  // Receives are forgotten, without completions, and so is why the connection ended. The owner's
  // thread calls.
  void Reset() REQUIRES_NIC_MUTEX;

  // Receives complete: the oldest with `first`, the others flushed.
  void Flush(CompletionStatus first) REQUIRES_NIC_MUTEX;

  void OnRequest(const Packet& packet) REQUIRES_NIC_MUTEX;

  // A request that meets the queue pair in Error.
  void OnRequestInError(const Packet& packet) REQUIRES_NIC_MUTEX;

  // See ConnectedCore::Emit and EmitAnswer.
  bool Emit(Share* share) REQUIRES_NIC_MUTEX;
  void EmitAnswer() REQUIRES_NIC_MUTEX;

  // The queue pair ends: what it took and has not acknowledged yet is acknowledged now.
  void AcknowledgeLast() REQUIRES_NIC_MUTEX;

 private:
  enum class Message : uint8_t { kNone, kSend, kWrite };
  // Why the connection has to end.
  struct Fault {
    uint8_t syndrome;
    uint64_t sequence;
    CompletionStatus receive_status;
  };

  // One request in its turn; each returns whether it was carried out.
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
  uint32_t msn_ = 0;       // messages carried out, 24 bits

  // The message that is arriving.
  Message message_ = Message::kNone;
  uint32_t bytes_ = 0;  // of it, so far
  uint64_t write_address_ = 0;
  uint32_t write_key_ = 0;
  uint32_t write_length_ = 0;

  // What the peer has to be told.
  bool ack_due_ = false;
  uint8_t nak_due_ = 0;    // a syndrome, or 0
  bool gap_told_ = false;  // silence until expected_ comes
  HeldPackets held_;       // selective repeat: what came after expected_
  ResponseQueue responses_;
  std::optional<Fault> fault_;  // waits for the answers before it to be gone
  std::optional<Fault> ended_;  // the NAK that ended the connection
  bool ended_due_ = false;
  uint64_t ended_due_at_ = 0;  // the sequence that it is to name

  ServedRequests served_;
};

}  // namespace tokamak::verbs::soft
