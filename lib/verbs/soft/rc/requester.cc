#include "lib/verbs/soft/rc/requester.h"

#include <algorithm>
#include <optional>

#include "lib/verbs/soft/packets/opcodes.h"
#include "lib/verbs/soft/rc/connected_core.h"
#include "lib/verbs/soft/rc/psn.h"
#include "lib/verbs/soft/rc/syndrome.h"
#include "lib/verbs/soft/state/gather.h"
#include "lib/verbs/soft/state/scatter.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::soft {
namespace {

// The peer acknowledges after this many packets at the latest, and often enough to keep a window
// moving.
constexpr uint32_t kMaxPacketsPerAck = 32;
constexpr uint32_t kAcksPerWindow = 4;
constexpr int64_t kAsksPerTimeout = 4;

// A READ is cut so that several pieces fill a window (while one is taken in, the next are on their
// way), but not too finely.
constexpr uint32_t kPiecesPerWindow = 4;
constexpr uint32_t kLeastPiece = 16;  // packets, where the window holds that many
constexpr uint32_t kMostPieceBytes = 128 * 1024;
static_assert(kPiecesPerWindow >= ReadBudget::kReservedShare);

constexpr uint32_t kMostOverdue = 16;  // in a row; the time-out is shorter long before

}  // namespace

Requester::Requester(NicState& nic_state, ConnectedCore& queue_pair, Congestion& congestion)
    : nic_state_(nic_state),
      queue_pair_(queue_pair),
      sends_(queue_pair.sends),
      congestion_(congestion),
      expected_(nic_state.reads),
      retransmit_(nic_state.alarms, [this]() REQUIRES_NIC_MUTEX { OnTimeout(); }),
      overdue_(nic_state.alarms, [this]() REQUIRES_NIC_MUTEX { OnOverdue(); }),
      ready_again_(nic_state.alarms, [this]() REQUIRES_NIC_MUTEX { queue_pair_.MarkReady(); }) {}

void Requester::Start(uint32_t psn) {
  unacked_ = position_ = next_ = sent_ = FirstSequence(psn);
  recovered_ = went_back_at_ = asked_ = 0;
  since_ack_request_ = acknowledged_ = timeouts_ = not_ready_ = overdue_in_a_row_ = 0;
  timing_ = false;
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
    if (cursor_ == started_ && !StartNext()) return false;
    SendSlot& slot = sends_.at(cursor_);
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
  if (cursor_ == sends_.tail() && missing_.empty()) return false;  // its owner rings when there is more
  // Asked now: its next turn would only find that it is too early.
  return queue_pair_.MaySend();
}

bool Requester::StartNext() {
  if (started_ == sends_.tail()) return false;
  SendSlot& slot = sends_.at(started_);
  if (!MayStart(slot)) return false;
  slot.first = next_;
  if (slot.is_local()) {
    slot.refused = !CarryOut(slot);
  } else {
    next_ += PacketsFor(slot.length, queue_pair_.mtu());
    slot.piece = PiecePackets();
  }
  slot.end = next_;
  if (slot.wants_answer()) ++unanswered_;
  ++started_;
  return true;
}

// A fence waits for READs and atomics, that of an invalidate for all requests. (10.8.3.3)
bool Requester::MayStart(const SendSlot& slot) const {
  if (!slot.fence) return true;
  return slot.opcode == Opcode::kLocalInvalidate ? oldest_ == started_ : unanswered_ == 0;
}

bool Requester::CarryOut(const SendSlot& slot) {
  if (slot.opcode == Opcode::kBindWindow) return nic_state_.keys.Bind(queue_pair_.asker(), slot.bind);
  if (!nic_state_.keys.Invalidate(queue_pair_.domain(), slot.rkey)) return false;
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropKey(slot.rkey);
  return true;
}

// Passes request cursor_, already carried out. Returns false when that failed: no request after it
// goes.
bool Requester::PassLocal() {
  if (sends_.at(cursor_).refused) {
    Halt(CompletionStatus::kWindowBind);
    return false;
  }
  ++cursor_;
  CompleteLocal();
  return true;
}

// Chosen once for each READ: a repeated one is cut alike, since a responder knows a request only as
// all new or all old.
uint32_t Requester::PiecePackets() const {
  const uint32_t mtu = queue_pair_.mtu();
  const uint32_t several = std::max(window_ / kPiecesPerWindow, std::min(kLeastPiece, window_));
  const uint32_t by_window = std::min(several, kMostPieceBytes / mtu);
  const uint64_t by_budget = nic_state_.reads.window() / kPiecesPerWindow / mtu;
  return std::max(1u, static_cast<uint32_t>(std::min<uint64_t>(by_window, by_budget)));
}

bool Requester::EmitData(SendSlot& slot, Share* share) {
  if (!MayGather(cursor_, position_)) {
    Halt(CompletionStatus::kLocalProtection);
    return false;
  }
  if (!nic_state_.sends.Take(charged_ == 0)) {
    queue_pair_.WaitToSend(charged_ == 0);
    return false;
  }
  ++charged_;
  Packet& packet = AddData(cursor_, position_, share);
  packet.ack_request = WantsAck(position_ + 1 == slot.end, *share);
  Sent(1);
  return true;
}

bool Requester::MayGather(uint64_t index, uint64_t sequence) const {
  const SendSlot& slot = sends_.at(index);
  const uint32_t mtu = queue_pair_.mtu();
  const uint32_t offset = static_cast<uint32_t>((sequence - slot.first) * mtu);
  return soft::MayGather(nic_state_.keys, queue_pair_.domain(), slot, offset, std::min(mtu, slot.length - offset));
}

// Adds the packet of request `index` that has this sequence.
Packet& Requester::AddData(uint64_t index, uint64_t sequence, Share* share) {
  const SendSlot& slot = sends_.at(index);
  const uint32_t mtu = queue_pair_.mtu();
  const uint32_t offset = static_cast<uint32_t>((sequence - slot.first) * mtu);
  const uint32_t length = std::min(mtu, slot.length - offset);
  const bool first = sequence == slot.first;
  const bool last = sequence + 1 == slot.end;
  Packet& packet = queue_pair_.AddPacket(DataOpcode(slot.opcode, first, last), sequence);
  packet.remote_address = slot.remote_address;
  packet.rkey = slot.rkey;
  packet.dma_length = slot.length;
  packet.immediate = slot.immediate;
  packet.solicited = last && slot.solicited;
  share->Spend(length);
  nic_state_.outbox.LooksUntil(sequence);
  Gather(nic_state_.keys, slot, sends_.inline_at(index), offset, length, nic_state_.outbox, &packet);
  queue_pair_.OnSend(packet);
  queue_pair_.counters.bytes_sent += length;
  return packet;
}

// Sends one packet that the peer misses, which is in the budget already. Returns false when there
// is none.
bool Requester::EmitRepeat(Share* share) {
  const std::optional<uint64_t> sequence = missing_.Next(unacked_);
  if (!sequence.has_value()) return false;
  uint64_t index = oldest_;
  while (sends_.at(index).end <= *sequence) ++index;
  if (!MayGather(index, *sequence)) {
    GoBack(Loss::kGap);  // which finds again that it may not
    return false;
  }
  AddData(index, *sequence, share).ack_request = true;
  ++queue_pair_.counters.packets_retransmitted;
  nic_state_.Trace(base::TraceKind::kRetransmit, ToPsn(*sequence), 1);
  return true;
}

bool Requester::EmitRead(SendSlot& slot, Share* share) {
  const uint32_t mtu = queue_pair_.mtu();
  const uint32_t depth = queue_pair_.reliability().reads_outstanding;
  if (depth == 0) {
    Halt(CompletionStatus::kLocalQpOperation);
    return false;
  }
  if (expected_.count() == depth) return false;
  const uint64_t piece_end = position_ + slot.piece - (position_ - slot.first) % slot.piece;
  const uint64_t packets = std::min(piece_end, slot.end) - position_;
  // A window that has shrunk below a piece lets one go, alone.
  if (packets > window_ - (position_ - unacked_) && position_ != unacked_) return false;
  const uint64_t offset = (position_ - slot.first) * mtu;
  const uint32_t length = static_cast<uint32_t>(std::min<uint64_t>(packets * mtu, slot.length - offset));
  if (!nic_state_.reads.Take(length, expected_.count() == 0)) {
    if (position_ == unacked_) retransmit_.Cancel();  // no answer is outstanding
    queue_pair_.WaitForReads(expected_.count() == 0);
    return false;
  }
  Packet& packet = queue_pair_.AddPacket(PacketOpcode::kReadRequest, position_);
  packet.remote_address = slot.remote_address + offset;
  packet.rkey = slot.rkey;
  packet.dma_length = length;
  packet.ack_request = true;
  queue_pair_.OnSend(packet);
  since_ack_request_ = 0;
  expected_.Add(position_ + packets, length);
  share->Spend(0);
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
  const bool swap = slot.opcode == Opcode::kCompareSwap;
  Packet& packet = queue_pair_.AddPacket(swap ? PacketOpcode::kCompareSwap : PacketOpcode::kFetchAdd, position_);
  packet.remote_address = slot.remote_address;
  packet.rkey = slot.rkey;
  packet.swap_or_add = slot.swap_or_add;
  packet.compare = slot.compare;
  packet.ack_request = true;
  queue_pair_.OnSend(packet);
  since_ack_request_ = 0;
  expected_.Add(position_ + 1, 0);
  share->Spend(0);
  Sent(1);
  return true;
}

// A packet also asks at the end of a turn, since the next may have to wait for room that only
// acknowledgements give back; when room is scarce and no packet on its way asks, since there may be
// no other turn; and when packets leave so slowly, by their rate or because a thousand take turns,
// that the time-out could come first.
bool Requester::WantsAck(bool last_of_message, const Share& share) {
  ++since_ack_request_;
  if (position_ == unacked_) quiet_since_ = nic_state_.alarms.now();
  const uint32_t every = nic_state_.options.ack_every;
  const uint32_t interval = std::max(1u, std::min(every != 0 ? every : kMaxPacketsPerAck, window_ / kAcksPerWindow));
  const bool window_full = position_ + 1 - unacked_ >= window_;
  const bool batch_ends = every == 0 && (share.spent() || nic_state_.outbox.at_capacity());
  const bool turn_ends = batch_ends || !nic_state_.sends.room();
  const bool scarce = nic_state_.sends.scarce() && !awaits_ack();
  const bool slow = queue_pair_.NextSend() - quiet_since_ >= queue_pair_.reliability().ack_timeout / kAsksPerTimeout;
  if (!last_of_message && !window_full && !turn_ends && !scarce && !slow && since_ack_request_ < interval) return false;
  since_ack_request_ = 0;
  asked_ = position_ + 1;
  quiet_since_ = nic_state_.alarms.now();
  return true;
}

void Requester::Sent(uint64_t packets) {
  if (position_ < sent_) {
    ++queue_pair_.counters.packets_retransmitted;
    nic_state_.Trace(base::TraceKind::kRetransmit, ToPsn(position_), packets);
  } else if (!timing_ && since_ack_request_ == 0) {
    timing_ = true;
    timed_ = position_;
    timed_at_ = nic_state_.alarms.now();
  }
  if (position_ == unacked_) {
    if (!retransmit_.set()) SetRetransmit();
    SetOverdue();
  }
  position_ += packets;
  sent_ = std::max(sent_, position_);
}

void Requester::Halt(CompletionStatus status) {
  halted_ = status;
  if (oldest_ == cursor_) Fail(status, 0);
}

// Packets sent before going back are given back already: acknowledged late, they cost nothing.
void Requester::GiveBackSends(uint64_t packets) {
  const uint64_t held = std::min(packets, charged_);
  charged_ -= held;
  nic_state_.sends.GiveBack(held);
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
  const bool alone = nic_state_.options.selective_repeat && unanswered_ == 0 && position_ == sent_;
  if (packet.syndrome != kSequenceNak || !alone) return OnNak(packet.syndrome);
  nic_state_.Trace(base::TraceKind::kNak, ToPsn(unacked_), packet.syndrome);
  ++queue_pair_.counters.naks_received_sequence;
  missing_.Add(packet, unacked_, sent_);
  timing_ = false;
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
  const uint32_t mtu = queue_pair_.mtu();
  const uint64_t offset = (sequence - slot->first) * mtu;
  const uint32_t length = static_cast<uint32_t>(std::min<uint64_t>(mtu, slot->length - offset));
  if (slot->opcode != Opcode::kRead || packet.payload_length() != length) {
    ++queue_pair_.counters.answers_bad;
    Fail(CompletionStatus::kBadResponse, static_cast<uint32_t>(packet.opcode));
    return;
  }
  ++queue_pair_.counters.answers_taken;
  const ScatterResult result =
      Scatter(nic_state_.keys, queue_pair_.domain(), absl::MakeConstSpan(slot->sges, slot->sge_count),
              static_cast<uint32_t>(offset), packet.pieces());
  if (result != ScatterResult::kDone) {
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
  if (!nic_state_.keys.LocalAllows(queue_pair_.domain(), slot->sges[0], true)) {
    Fail(CompletionStatus::kLocalProtection, 0);
    return;
  }
  if (!nic_state_.keys.IsPhantom(slot->sges[0].lkey)) {
    uint8_t* const to = nic_state_.keys.MemoryOf(slot->sges[0]);
    if (!nic_state_.keys.Write(to, &packet.original, sizeof(packet.original))) {
      Fail(CompletionStatus::kLocalProtection, 0);
      return;
    }
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
  SendSlot& slot = sends_.at(oldest_);
  if (slot.wants_answer()) return &slot;
  ++queue_pair_.counters.answers_bad;
  Fail(CompletionStatus::kBadResponse, static_cast<uint32_t>(packet.opcode));
  return nullptr;
}

// Returns false when a request before `end` needs an answer of its own, which was lost.
bool Requester::AcknowledgeUpTo(uint64_t end) {
  while (unacked_ < end) {
    SendSlot& slot = sends_.at(oldest_);
    if (slot.wants_answer()) {
      ++queue_pair_.counters.responses_lost;
      ResendFromGap();
      return false;
    }
    const uint64_t to = std::min(end, slot.end);
    GiveBackSends(to - unacked_);
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
  Complete(oldest_, CompletionStatus::kSuccess, 0);
  if (sends_.at(oldest_).wants_answer()) --unanswered_;
  ++oldest_;
  CompleteLocal();
  cursor_ = std::max(cursor_, oldest_);
}

// Completes those without any before them.
void Requester::CompleteLocal() {
  for (; oldest_ < started_ && sends_.at(oldest_).is_local() && !sends_.at(oldest_).refused; ++oldest_) {
    Complete(oldest_, CompletionStatus::kSuccess, 0);
  }
}

void Requester::Complete(uint64_t index, CompletionStatus status, uint32_t provider_code) {
  const SendSlot& slot = sends_.at(index);
  if (status == CompletionStatus::kSuccess && !slot.signaled) return;
  Completion completion;
  completion.id = slot.id;
  completion.status = status;
  completion.opcode = ToCompletionOpcode(slot.opcode);
  completion.byte_count = slot.length;
  completion.queue_pair_number = queue_pair_.number();
  completion.provider_code = provider_code;
  nic_state_.Push(queue_pair_.send_ring(), completion, sends_.released(), index + 1, false);
}

void Requester::FinishTurn() {
  if (!running_ || !progressed_) return;
  progressed_ = false;
  TakeBackMemory();
  congestion_.OnAck(acknowledged_);
  acknowledged_ = 0;
  MeasureRoundTrip();
  window_ = congestion_.Window();
  if (position_ == unacked_) {
    retransmit_.Cancel();
    overdue_.Cancel();
  } else {
    // From now on an answer must come within the time-out agreed, and should come sooner.
    SetRetransmit();
    SetOverdue();
  }
  queue_pair_.MarkReady();
  if (halted_ != CompletionStatus::kSuccess && oldest_ == cursor_) Fail(halted_, 0);
}

// Takes out waiting copies of acknowledged packets: after the completions the owner may write that
// memory.
void Requester::TakeBackMemory() {
  if (nic_state_.outbox.empty()) return;
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropAcknowledged(queue_pair_.number(), unacked_);
}

void Requester::SetRetransmit() { retransmit_.Set(AckTimeout(AckTimeoutCode(queue_pair_.reliability().ack_timeout))); }

// Doubles the time after each overdue answer without a measured round trip.
void Requester::SetOverdue() {
  overdue_.Cancel();
  excused_ = false;
  const std::optional<base::Duration> overdue = congestion_.Overdue();
  if (!overdue.has_value() || overdue_in_a_row_ >= kMostOverdue) return;
  const base::Duration delay = *overdue * (int64_t{1} << overdue_in_a_row_);
  if (delay >= queue_pair_.reliability().ack_timeout) return;
  overdue_.Set(delay);
  overdue_at_ = nic_state_.alarms.now() + delay;
}

// Times one packet at a time, and only one that was not sent again: else its answer may be that to
// the first try.
void Requester::MeasureRoundTrip() {
  if (!timing_ || unacked_ <= timed_) return;
  timing_ = false;
  overdue_in_a_row_ = 0;
  congestion_.OnRoundTrip(nic_state_.alarms.now() - timed_at_);
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
  asked_ = 0;
  cursor_ = oldest_;
  halted_ = CompletionStatus::kSuccess;
  expected_.Clear();
  GiveBackSends(charged_);
  timing_ = false;
  retransmit_.Cancel();
  overdue_.Cancel();
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
  timing_ = false;
  went_back_at_ = unacked_;
  position_ = unacked_;
  asked_ = 0;
  cursor_ = oldest_;
  halted_ = CompletionStatus::kSuccess;
  expected_.Clear();
  GiveBackSends(charged_);
  // Time runs again with the next packet, which may have to wait. The time-out of an overdue answer
  // goes on.
  overdue_.Cancel();
  if (loss != Loss::kOverdue) retransmit_.Cancel();
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
  if (!excused_ && nic_state_.alarms.now() - overdue_at_ > nic_state_.options.pause) {
    // This NIC paused: answers that came meanwhile may not have been looked at.
    excused_ = true;
    overdue_.Set(nic_state_.options.pause);
    return;
  }
  ++queue_pair_.counters.answers_overdue;
  ++overdue_in_a_row_;
  GoBack(Loss::kOverdue);
  went_back_at_ = 0;  // later reports are news
}

void Requester::Fail(CompletionStatus status, uint32_t provider_code) {
  queue_pair_.Fail(status, CompletionStatus::kFlushed, provider_code);
}

void Requester::Flush(CompletionStatus first, uint32_t provider_code) {
  const uint64_t tail = sends_.tail();
  for (uint64_t i = oldest_; i < tail; ++i) {
    const bool failed = i == oldest_ && first != CompletionStatus::kFlushed;
    Complete(i, failed ? first : CompletionStatus::kFlushed, failed ? provider_code : 0);
  }
  Forget(tail);
}

// Ends the requests before `tail`, not those that the owner posts meanwhile.
void Requester::Forget(uint64_t tail) {
  running_ = false;
  progressed_ = false;
  oldest_ = cursor_ = started_ = tail;
  unacked_ = position_ = next_ = sent_;
  unanswered_ = 0;
  halted_ = CompletionStatus::kSuccess;
  missing_.Clear();
  expected_.Clear();
  GiveBackSends(charged_);
  retransmit_.Cancel();
  overdue_.Cancel();
  ready_again_.Cancel();
}

}  // namespace tokamak::verbs::soft
