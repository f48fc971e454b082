// Requester is the sending half of a reliable connection: it turns send requests into packets and
// answers into completions.
//
// After a loss the packets are sent again, from the oldest unacknowledged one (go-back-N) or only
// those that the peer misses. The requests form one line:
//
//     requests_.oldest()       cursor_         requests_.started()     posted()
//          |  partly or not       |  being sent,       |  not begun      |
//          |  acknowledged        |  or again          |                 |
//       unacked_              position_                                           (sequences)
//
// A READ takes as many sequences as its answer has packets. It goes out as a chain of READ requests
// for pieces that fit the windows, so that an answer never arrives faster than it can be taken; a
// piece is outstanding until its last byte is here.
//
// Law: oldest() <= cursor_ <= started(); unacked_ <= position_; unacked_ lies in request oldest().
// Law: clock_ runs only while packets are out, unacked_ < position_; after an overdue answer also
// until it is sent again.
// Thread rule: under the NIC's mutex.
#pragma once

#include <cstdint>

#include "lib/verbs/soft/congestion/congestion.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/rc/ack_requests.h"
#include "lib/verbs/soft/rc/answer_clock.h"
#include "lib/verbs/soft/rc/charged_packets.h"
#include "lib/verbs/soft/rc/expected_answers.h"
#include "lib/verbs/soft/rc/missing_packets.h"
#include "lib/verbs/soft/rc/request_packets.h"
#include "lib/verbs/soft/rc/started_requests.h"
#include "lib/verbs/soft/state/alarm.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/nic_state.h"
#include "lib/verbs/soft/state/outbox.h"
#include "lib/verbs/soft/state/work_queue.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

class ConnectedCore;

class Requester final {
 public:
  Requester(NicState& nic_state, ConnectedCore& queue_pair, Congestion& congestion);

  // Starts in ReadyToSend, at `psn`.
  void Start(uint32_t psn) REQUIRES_NIC_MUTEX;

  // Forgets all requests, without completions. The owner's thread calls.
  void Reset() REQUIRES_NIC_MUTEX;

  // Completes all requests: the oldest with `first`, the others flushed.
  void Flush(CompletionStatus first, uint32_t provider_code) REQUIRES_NIC_MUTEX;

  void OnAcknowledge(const Packet& packet) REQUIRES_NIC_MUTEX;
  void OnReadResponse(const Packet& packet) REQUIRES_NIC_MUTEX;
  void OnAtomicAcknowledge(const Packet& packet) REQUIRES_NIC_MUTEX;

  // Called after the answers of one turn.
  void FinishTurn() REQUIRES_NIC_MUTEX;

  // See ConnectedCore::Emit.
  bool Emit(Share* share) REQUIRES_NIC_MUTEX;

 private:
  // Sending.
  bool StartNext() REQUIRES_NIC_MUTEX;
  bool PassLocal() REQUIRES_NIC_MUTEX;
  bool EmitData(SendSlot& slot, Share* share) REQUIRES_NIC_MUTEX;
  bool EmitRepeat(Share* share) REQUIRES_NIC_MUTEX;
  bool EmitRead(SendSlot& slot, Share* share) REQUIRES_NIC_MUTEX;
  bool EmitAtomic(SendSlot& slot, Share* share) REQUIRES_NIC_MUTEX;
  bool WantsAck(bool last_of_message, const Share& share) REQUIRES_NIC_MUTEX;
  void Sent(uint64_t packets) REQUIRES_NIC_MUTEX;
  void Halt(CompletionStatus status) REQUIRES_NIC_MUTEX;

  // Answers.
  SendSlot* Answered(const Packet& packet, uint64_t sequence) REQUIRES_NIC_MUTEX;
  bool AcknowledgeUpTo(uint64_t end) REQUIRES_NIC_MUTEX;
  void Progress(uint64_t to) REQUIRES_NIC_MUTEX;
  void CompleteOldest() REQUIRES_NIC_MUTEX;
  void OnNak(uint8_t syndrome) REQUIRES_NIC_MUTEX;

  // Losses and failures.
  void Fail(CompletionStatus status, uint32_t provider_code) REQUIRES_NIC_MUTEX;
  void WaitUntilReady(uint8_t timer) REQUIRES_NIC_MUTEX;
  void ResendFromGap() REQUIRES_NIC_MUTEX;
  void OnSelectiveNak(const Packet& packet) REQUIRES_NIC_MUTEX;
  void TellLoss(Loss loss) REQUIRES_NIC_MUTEX;
  void GoBack(Loss loss) REQUIRES_NIC_MUTEX;
  void OnTimeout() REQUIRES_NIC_MUTEX;
  void OnOverdue() REQUIRES_NIC_MUTEX;
  void TakeBackMemory() REQUIRES_NIC_MUTEX;
  void Stop() REQUIRES_NIC_MUTEX;

  bool outstanding() const { return unacked_ < sent_; }

  NicState& nic_state_;
  ConnectedCore& queue_pair_;
  Congestion& congestion_;

  StartedRequests requests_;
  RequestPackets packets_;
  uint64_t cursor_ = 0;  // index of the request that position_ lies in, or the next
  // Packets, by sequence.
  uint64_t unacked_ = 0;
  uint64_t position_ = 0;
  uint64_t sent_ = 0;          // one past the last that was ever sent
  uint64_t recovered_ = 0;     // losses before this were reported to congestion_
  uint64_t went_back_at_ = 0;  // unacked_ at the last go-back; one loss is answered once
  uint32_t window_ = 1;        // packets
  uint32_t acknowledged_ = 0;  // packets, in this turn
  bool progressed_ = false;

  AckRequests ack_requests_;
  ChargedPackets charged_;
  ExpectedAnswers expected_;
  MissingPackets missing_;

  CompletionStatus halted_ =
      CompletionStatus::kSuccess;  // why request cursor_ cannot be sent; it fails when it is the oldest
  bool running_ = false;
  uint32_t timeouts_ = 0;
  uint32_t not_ready_ = 0;
  AnswerClock clock_;
  Alarm ready_again_;
};

}  // namespace tokamak::verbs::soft
