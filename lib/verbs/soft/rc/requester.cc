#include "lib/verbs/soft/rc/requester.h"

#include <algorithm>
#include <optional>

#include "lib/verbs/soft/rc/connected_core.h"
#include "lib/verbs/soft/rc/psn.h"
#include "lib/verbs/soft/rc/read_pieces.h"
#include "lib/verbs/soft/rc/syndrome.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::soft {

Requester::Requester(NicState& nic_state, ConnectedCore& queue_pair, Congestion& congestion)
    : nic_state_(nic_state),
      queue_pair_(queue_pair),
      congestion_(congestion),
      requests_(nic_state, queue_pair),
      packets_(nic_state, queue_pair),
      ack_requests_(nic_state.options.ack_every),
      charged_(nic_state.sends),
      expected_(nic_state.reads),
      clock_(
          nic_state.alarms, congestion, nic_state.options.pause, [this]() REQUIRES_NIC_MUTEX { OnTimeout(); },
          [this]() REQUIRES_NIC_MUTEX { OnOverdue(); }),
      ready_again_(nic_state.alarms, [this]() REQUIRES_NIC_MUTEX { queue_pair_.MarkReady(); }) {}

void Requester::Start(uint32_t psn) {
  unacked_ = position_ = sent_ = FirstSequence(psn);
  requests_.Start(sent_);
  recovered_ = went_back_at_ = 0;
  acknowledged_ = timeouts_ = not_ready_ = 0;
  ack_requests_.Start();
  clock_.Start();
  congestion_.Reset();
  window_ = congestion_.Window();
  running_ = true;
}

bool Requester::Emit(Share* share) {
  if (!running_ || ready_again_.set()) return false;
  while (!share->spent() && !nic_state_.outbox.full()) {
    if (!missing_.empty()) {
      if (!queue_pair_.MaySend()) return false;
      if (EmitRepeat(share)) continue;
    }
    if (halted_ != CompletionStatus::kSuccess) return false;
    if (cursor_ == requests_.started() && !StartNext()) return false;
    SendSlot& slot = requests_.at(cursor_);
    if (slot.is_local()) {
      if (!PassLocal()) return false;
      share->Spend(0);
      continue;
    }
    if (position_ - unacked_ >= window_ || !queue_pair_.MaySend()) return false;
    bool went = false;
    if (!slot.wants_answer()) {
      went = EmitData(slot, share);
    } else if (slot.opcode == Opcode::kRead) {
      went = EmitRead(slot, share);
    } else {
      went = EmitAtomic(slot, share);
    }
    if (!went) return false;
    if (position_ == slot.end) ++cursor_;
  }
  if (cursor_ == requests_.posted() && missing_.empty()) return false;  // its owner rings when there is more
  // Asked now: its next turn would only find that it is too early.
  return queue_pair_.MaySend();
}

bool Requester::StartNext() {
  if (!requests_.StartNext()) return false;
  requests_.at(cursor_).piece = ReadPieces::Size(window_, nic_state_.reads.window(), queue_pair_.mtu());
  return true;
}

// Passes request cursor_, already carried out. Returns false when that failed: no request after it
// goes.
bool Requester::PassLocal() {
  if (requests_.at(cursor_).refused) {
    Halt(CompletionStatus::kWindowBind);
    return false;
  }
  ++cursor_;
  requests_.CompleteLocal();
  return true;
}

bool Requester::EmitData(SendSlot& slot, Share* share) {
  if (!packets_.MayAdd(cursor_, position_)) {
    Halt(CompletionStatus::kLocalProtection);
    return false;
  }
  if (!charged_.Take()) {
    queue_pair_.WaitToSend(charged_.empty());
    return false;
  }
  Packet& packet = packets_.AddData(cursor_, position_, share);
  packet.ack_request = WantsAck(position_ + 1 == slot.end, *share);
  Sent(1);
  return true;
}

// Sends one packet that the peer misses, which is in the budget already. Returns false when there
// is none.
bool Requester::EmitRepeat(Share* share) {
  const std::optional<uint64_t> sequence = missing_.Next(unacked_);
  if (!sequence.has_value()) return false;
  uint64_t index = requests_.oldest();
  while (requests_.at(index).end <= *sequence) ++index;
  if (!packets_.MayAdd(index, *sequence)) {
    GoBack(Loss::kGap);  // which finds again that it may not
    return false;
  }
  packets_.AddData(index, *sequence, share).ack_request = true;
  ++queue_pair_.counters.packets_retransmitted;
  nic_state_.Trace(base::TraceKind::kRetransmit, ToPsn(*sequence), 1);
  return true;
}

bool Requester::EmitRead(SendSlot& slot, Share* share) {
  const uint32_t depth = queue_pair_.reliability().reads_outstanding;
  if (depth == 0) {
    Halt(CompletionStatus::kLocalQpOperation);
    return false;
  }
  if (expected_.count() == depth) return false;
  const uint64_t packets = ReadPieces::Left(slot, position_);
  // A window that has shrunk below a piece lets one go, alone.
  if (packets > window_ - (position_ - unacked_) && position_ != unacked_) return false;
  const uint32_t length = packets_.Length(slot, position_, packets);
  if (!nic_state_.reads.Take(length, expected_.count() == 0)) {
    if (position_ == unacked_) clock_.StopTimeout();  // no answer is outstanding
    queue_pair_.WaitForReads(expected_.count() == 0);
    return false;
  }
  packets_.AddRead(slot, position_, length, share);
  ack_requests_.AskedByAnswer();
  expected_.Add(position_ + packets, length);
  Sent(packets);
  return true;
}

bool Requester::EmitAtomic(SendSlot& slot, Share* share) {
  const uint32_t depth = queue_pair_.reliability().reads_outstanding;
  if (depth == 0) {
    Halt(CompletionStatus::kLocalQpOperation);
    return false;
  }
  if (expected_.count() == depth) return false;
  packets_.AddAtomic(slot, position_, share);
  ack_requests_.AskedByAnswer();
  expected_.Add(position_ + 1, 0);
  Sent(1);
  return true;
}

bool Requester::WantsAck(bool last_of_message, const Share& share) {
  AckRequests::Leaving leaving;
  leaving.sequence = position_;
  leaving.unacked = unacked_;
  leaving.window = window_;
  leaving.last_of_message = last_of_message;
  leaving.last_of_batch = share.spent() || nic_state_.outbox.at_capacity();
  leaving.room = nic_state_.sends.room();
  leaving.scarce = nic_state_.sends.scarce();
  leaving.now = nic_state_.alarms.now();
  leaving.next = queue_pair_.NextSend();
  leaving.timeout = queue_pair_.reliability().ack_timeout;
  return ack_requests_.Asks(leaving);
}

void Requester::Sent(uint64_t packets) {
  if (position_ < sent_) {
    ++queue_pair_.counters.packets_retransmitted;
    nic_state_.Trace(base::TraceKind::kRetransmit, ToPsn(position_), packets);
  } else if (ack_requests_.just_asked()) {
    clock_.Measure(position_);
  }
  if (position_ == unacked_) clock_.Run(queue_pair_.reliability().ack_timeout);
  position_ += packets;
  sent_ = std::max(sent_, position_);
}

void Requester::Halt(CompletionStatus status) {
  halted_ = status;
  if (requests_.oldest() == cursor_) Fail(status, 0);
}

// ---- Answers, and their absence.

void Requester::OnAcknowledge(const Packet& packet) {
  const uint64_t sequence = ExtendPsn(packet.psn, unacked_);
  if (sequence >= sent_) {
    ++queue_pair_.counters.answers_bad;
    return;
  }
  if (sequence < unacked_) {
    ++queue_pair_.counters.answers_stale;
    return;
  }
  if (IsAck(packet.syndrome)) {
    if (AcknowledgeUpTo(sequence + 1)) ++queue_pair_.counters.answers_taken;
  } else if (AcknowledgeUpTo(sequence)) {
    if (packet.opcode == PacketOpcode::kSelectiveNak) return OnSelectiveNak(packet);
    OnNak(packet.syndrome);
  }
}

void Requester::OnNak(uint8_t syndrome) {
  QueuePairCounters& counters = queue_pair_.counters;
  nic_state_.Trace(base::TraceKind::kNak, ToPsn(unacked_), syndrome);
  if (IsNotReady(syndrome)) {
    ++counters.naks_received_not_ready;
    WaitUntilReady(NotReadyCodeOf(syndrome));
    return;
  }
  switch (syndrome) {
    case kSequenceNak:
      ++counters.naks_received_sequence;
      ResendFromGap();
      return;
    case kInvalidRequestNak:
      ++counters.naks_received_fatal;
      Fail(CompletionStatus::kRemoteInvalidRequest, syndrome);
      return;
    case kRemoteAccessNak:
      ++counters.naks_received_fatal;
      Fail(CompletionStatus::kRemoteAccess, syndrome);
      return;
    case kRemoteOperationNak:
      ++counters.naks_received_fatal;
      Fail(CompletionStatus::kRemoteOperation, syndrome);
      return;
    default:
      ++counters.answers_bad;
  }
}

void Requester::OnSelectiveNak(const Packet& packet) {
  const bool alone = nic_state_.options.selective_repeat && requests_.unanswered() == 0 && position_ == sent_;
  if (packet.syndrome != kSequenceNak || !alone) return OnNak(packet.syndrome);
  nic_state_.Trace(base::TraceKind::kNak, ToPsn(unacked_), packet.syndrome);
  ++queue_pair_.counters.naks_received_sequence;
  missing_.Add(packet, unacked_, sent_);
  clock_.ForgetRoundTrip();
  TellLoss(Loss::kGap);
  queue_pair_.MarkReady();
}

void Requester::TellLoss(Loss loss) {
  if (unacked_ < recovered_ && loss != Loss::kOverdue) return;
  recovered_ = sent_;
  congestion_.OnLoss(loss);
  window_ = congestion_.Window();
}

void Requester::OnReadResponse(const Packet& packet) {
  const uint64_t sequence = ExtendPsn(packet.psn, unacked_);
  SendSlot* slot = Answered(packet, sequence);
  if (slot == nullptr) return;
  if (slot->opcode != Opcode::kRead || packet.payload_length() != packets_.Length(*slot, sequence)) {
    ++queue_pair_.counters.answers_bad;
    Fail(CompletionStatus::kBadResponse, static_cast<uint32_t>(packet.opcode));
    return;
  }
  ++queue_pair_.counters.answers_taken;
  if (!packets_.PlaceData(*slot, sequence, packet)) {
    Fail(CompletionStatus::kLocalProtection, 0);
    return;
  }
  Progress(sequence + 1);
  expected_.RemoveUpTo(unacked_);
  if (unacked_ == slot->end) CompleteOldest();
}

void Requester::OnAtomicAcknowledge(const Packet& packet) {
  SendSlot* slot = Answered(packet, ExtendPsn(packet.psn, unacked_));
  if (slot == nullptr) return;
  if (slot->opcode != Opcode::kCompareSwap && slot->opcode != Opcode::kFetchAdd) {
    ++queue_pair_.counters.answers_bad;
    Fail(CompletionStatus::kBadResponse, static_cast<uint32_t>(packet.opcode));
    return;
  }
  ++queue_pair_.counters.answers_taken;
  if (!packets_.PlaceResult(*slot, packet)) {
    Fail(CompletionStatus::kLocalProtection, 0);
    return;
  }
  Progress(slot->end);
  expected_.RemoveUpTo(unacked_);
  CompleteOldest();
}

// Returns the request that `sequence` answers, or null when that is not its turn.
SendSlot* Requester::Answered(const Packet& packet, uint64_t sequence) {
  if (sequence >= sent_) {
    ++queue_pair_.counters.answers_bad;
    return nullptr;
  }
  if (sequence < unacked_) {
    ++queue_pair_.counters.answers_stale;
    return nullptr;
  }
  // An answer acknowledges all requests before its own.
  if (!AcknowledgeUpTo(sequence)) return nullptr;
  SendSlot& slot = requests_.at(requests_.oldest());
  if (slot.wants_answer()) return &slot;
  ++queue_pair_.counters.answers_bad;
  Fail(CompletionStatus::kBadResponse, static_cast<uint32_t>(packet.opcode));
  return nullptr;
}

// Returns false when a request before `end` needs an answer of its own, which was lost.
bool Requester::AcknowledgeUpTo(uint64_t end) {
  while (unacked_ < end) {
    SendSlot& slot = requests_.at(requests_.oldest());
    if (slot.wants_answer()) {
      ++queue_pair_.counters.responses_lost;
      ResendFromGap();
      return false;
    }
    const uint64_t to = std::min(end, slot.end);
    charged_.GiveBack(to - unacked_);
    Progress(to);
    if (unacked_ == slot.end) CompleteOldest();
  }
  return true;
}

void Requester::Progress(uint64_t to) {
  acknowledged_ += static_cast<uint32_t>(to - unacked_);
  unacked_ = to;
  position_ = std::max(position_, to);
  timeouts_ = not_ready_ = 0;
  progressed_ = true;
}

void Requester::CompleteOldest() {
  requests_.CompleteOldest();
  cursor_ = std::max(cursor_, requests_.oldest());
}

void Requester::FinishTurn() {
  if (!running_ || !progressed_) return;
  progressed_ = false;
  TakeBackMemory();
  congestion_.OnAck(acknowledged_);
  acknowledged_ = 0;
  clock_.OnAcknowledged(unacked_);
  window_ = congestion_.Window();
  if (position_ == unacked_) {
    clock_.Stop();
  } else {
    clock_.RunAgain(queue_pair_.reliability().ack_timeout);
  }
  queue_pair_.MarkReady();
  if (halted_ != CompletionStatus::kSuccess && requests_.oldest() == cursor_) Fail(halted_, 0);
}

// Takes out waiting copies of acknowledged packets: after the completions the owner may write that
// memory.
void Requester::TakeBackMemory() {
  if (nic_state_.outbox.empty()) return;
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropAcknowledged(queue_pair_.number(), unacked_);
}

void Requester::WaitUntilReady(uint8_t timer) {
  if (ready_again_.set()) return;
  const uint8_t tries = queue_pair_.reliability().rnr_retry_count;
  if (tries != kRnrRetryForever && not_ready_ >= tries) {
    Fail(CompletionStatus::kRnrRetryExceeded, 0);
    return;
  }
  ++not_ready_;
  missing_.Clear();
  position_ = unacked_;
  ack_requests_.GoBack();
  cursor_ = requests_.oldest();
  halted_ = CompletionStatus::kSuccess;
  expected_.Clear();
  charged_.Clear();
  clock_.ForgetRoundTrip();
  clock_.Stop();
  ready_again_.Set(NotReadyDelay(timer));
}

// Goes back, once for one loss: a second loss is for OnOverdue.
void Requester::ResendFromGap() {
  if (went_back_at_ == unacked_) return;
  GoBack(Loss::kGap);
}

void Requester::GoBack(Loss loss) {
  TellLoss(loss);
  missing_.Clear();
  clock_.ForgetRoundTrip();
  went_back_at_ = unacked_;
  position_ = unacked_;
  ack_requests_.GoBack();
  cursor_ = requests_.oldest();
  halted_ = CompletionStatus::kSuccess;
  expected_.Clear();
  charged_.Clear();
  // Time runs again with the next packet, which may have to wait. The time-out of an overdue answer
  // goes on.
  clock_.StopOverdue();
  if (loss != Loss::kOverdue) clock_.StopTimeout();
  queue_pair_.MarkReady();
}

void Requester::OnTimeout() {
  if (!running_ || !outstanding()) return;
  ++queue_pair_.counters.timeouts;
  if (timeouts_ >= queue_pair_.reliability().retry_count) {
    Fail(CompletionStatus::kRetryExceeded, 0);
    return;
  }
  ++timeouts_;
  GoBack(Loss::kTimeout);
  went_back_at_ = 0;  // later reports are news
}

// Sends again: a last packet, its answer or a repetition got lost, which nobody reports. It is no
// agreed retry: the time-out goes on.
void Requester::OnOverdue() {
  if (!running_ || !outstanding() || ready_again_.set()) return;
  if (!clock_.CountOverdue()) return;
  ++queue_pair_.counters.answers_overdue;
  GoBack(Loss::kOverdue);
  went_back_at_ = 0;  // later reports are news
}

void Requester::Fail(CompletionStatus status, uint32_t provider_code) {
  queue_pair_.Fail(status, CompletionStatus::kFlushed, provider_code);
}

void Requester::Reset() {
  requests_.Forget(sent_);
  Stop();
}

void Requester::Flush(CompletionStatus first, uint32_t provider_code) {
  requests_.Flush(first, provider_code, sent_);
  Stop();
}

// Ends with all requests, which are forgotten.
void Requester::Stop() {
  running_ = false;
  progressed_ = false;
  cursor_ = requests_.oldest();
  unacked_ = position_ = sent_;
  halted_ = CompletionStatus::kSuccess;
  missing_.Clear();
  expected_.Clear();
  charged_.Clear();
  clock_.Stop();
  ready_again_.Cancel();
}

}  // namespace tokamak::verbs::soft
