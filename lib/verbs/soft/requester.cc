#include "lib/verbs/soft/requester.h"

#include <algorithm>

#include "lib/verbs/soft/psn.h"
#include "lib/verbs/soft/queue_pair_core.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::soft {
namespace {

// The peer is asked for an acknowledgement after so many packets at the latest, and often enough to keep a window moving.
constexpr uint32_t kMaxPacketsPerAck = 32;
constexpr uint32_t kAcksPerWindow = 4;

// A READ is cut so that several pieces fill a window (while one is taken in, the next are on their way), but not too finely.
constexpr uint32_t kPiecesPerWindow = 4;
constexpr uint32_t kLeastPiece = 16;  // packets, where the window holds so many
constexpr uint32_t kMostPieceBytes = 128 * 1024;
static_assert(kPiecesPerWindow >= ReadBudget::kReservedShare);

PacketOpcode DataOpcode(Opcode opcode, bool first, bool last) {
  if (last && opcode == Opcode::kSendWithInvalidate) {
    return first ? PacketOpcode::kSendOnlyWithInvalidate : PacketOpcode::kSendLastWithInvalidate;
  }
  const bool immediate = opcode == Opcode::kSendWithImm || opcode == Opcode::kWriteWithImm;
  const bool write = opcode == Opcode::kWrite || opcode == Opcode::kWriteWithImm;
  PacketOpcode sending = PacketOpcode::kSendMiddle;
  if (first && last) {
    sending = immediate ? PacketOpcode::kSendOnlyWithImm : PacketOpcode::kSendOnly;
  } else if (first) {
    sending = PacketOpcode::kSendFirst;
  } else if (last) {
    sending = immediate ? PacketOpcode::kSendLastWithImm : PacketOpcode::kSendLast;
  }
  if (!write) return sending;
  constexpr int kToWrite = static_cast<int>(PacketOpcode::kWriteFirst) - static_cast<int>(PacketOpcode::kSendFirst);
  return static_cast<PacketOpcode>(static_cast<int>(sending) + kToWrite);
}

}  // namespace

Requester::Requester(Engine& engine, QueuePairCore& queue_pair, Congestion& congestion)
    : engine_(engine),
      queue_pair_(queue_pair),
      sends_(queue_pair.sends),
      congestion_(congestion),
      retransmit_(engine.alarms, [this] { OnTimeout(); }),
      overdue_(engine.alarms, [this] { OnOverdue(); }),
      ready_again_(engine.alarms, [this] { queue_pair_.MarkReady(); }) {}

void Requester::Start(uint32_t psn) {
  unacked_ = position_ = next_ = sent_ = FirstSequence(psn);
  recovered_ = went_back_at_ = 0;
  since_ack_request_ = acknowledged_ = timeouts_ = not_ready_ = overdue_in_a_row_ = 0;
  timing_ = false;
  congestion_.Reset();
  window_ = congestion_.Window();
  running_ = true;
}

bool Requester::Emit(Share* share) {
  if (!running_ || ready_again_.set()) return false;
  while (!share->spent() && !engine_.outbox.full()) {
    if (halted_ != CompletionStatus::kSuccess) return false;
    if (cursor_ == started_ && !StartNext()) return false;
    SendSlot& slot = sends_.at(cursor_);
    if (slot.is_local()) {
      if (!PassLocal()) return false;
      share->Spend(0);
      continue;
    }
    if (position_ - unacked_ >= window_) return false;
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
  return true;
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

// A fence waits for READs and atomics, that of an invalidate for everything. (10.8.3.3)
bool Requester::MayStart(const SendSlot& slot) const {
  if (!slot.fence) return true;
  return slot.opcode == Opcode::kLocalInvalidate ? oldest_ == started_ : unanswered_ == 0;
}

bool Requester::CarryOut(const SendSlot& slot) {
  if (slot.opcode == Opcode::kBindWindow) return engine_.keys.Bind(queue_pair_.asker(), slot.bind);
  if (!engine_.keys.Invalidate(queue_pair_.domain(), slot.rkey)) return false;
  engine_.counters.dropped_before_send += engine_.outbox.DropKey(slot.rkey);
  return true;
}

// Request cursor_ was carried out when it started. Returns false when that failed: nothing after it goes.
bool Requester::PassLocal() {
  if (sends_.at(cursor_).refused) {
    Halt(CompletionStatus::kWindowBind);
    return false;
  }
  ++cursor_;
  CompleteLocal();
  return true;
}

// Chosen once for each READ: one that is asked again is cut in the same places, since a responder knows a request only as
// all new or all old.
uint32_t Requester::PiecePackets() const {
  const uint32_t mtu = queue_pair_.mtu();
  const uint32_t several = std::max(window_ / kPiecesPerWindow, std::min(kLeastPiece, window_));
  const uint32_t by_window = std::min(several, kMostPieceBytes / mtu);
  const uint64_t by_budget = engine_.reads.window() / kPiecesPerWindow / mtu;
  return std::max(1u, static_cast<uint32_t>(std::min<uint64_t>(by_window, by_budget)));
}

bool Requester::EmitData(SendSlot& slot, Share* share) {
  const uint32_t mtu = queue_pair_.mtu();
  const uint32_t offset = static_cast<uint32_t>((position_ - slot.first) * mtu);
  const uint32_t length = std::min(mtu, slot.length - offset);
  if (!MayRead(slot, offset, length)) {
    Halt(CompletionStatus::kLocalProtection);
    return false;
  }
  if (!engine_.sends.Take(charged_ == 0)) {
    queue_pair_.WaitToSend(charged_ == 0);
    return false;
  }
  ++charged_;
  const bool first = position_ == slot.first;
  const bool last = position_ + 1 == slot.end;
  Packet& packet = queue_pair_.AddPacket(DataOpcode(slot.opcode, first, last), position_);
  packet.remote_address = slot.remote_address;
  packet.rkey = slot.rkey;
  packet.dma_length = slot.length;
  packet.immediate = slot.immediate;
  packet.solicited = last && slot.solicited;
  share->Spend(length);
  packet.ack_request = WantsAck(last, *share);
  engine_.outbox.LooksUntil(position_);
  Gather(slot, offset, length, &packet);
  queue_pair_.counters.bytes_sent += length;
  Sent(1);
  return true;
}

bool Requester::EmitRead(SendSlot& slot, Share* share) {
  const uint32_t mtu = queue_pair_.mtu();
  const uint32_t depth = queue_pair_.reliability().reads_outstanding;
  if (depth == 0) {
    Halt(CompletionStatus::kLocalQpOperation);
    return false;
  }
  if (expected_count_ == depth) return false;
  const uint64_t piece_end = position_ + slot.piece - (position_ - slot.first) % slot.piece;
  const uint64_t packets = std::min(piece_end, slot.end) - position_;
  // A window that has shrunk below a piece lets one go, alone.
  if (packets > window_ - (position_ - unacked_) && position_ != unacked_) return false;
  const uint64_t offset = (position_ - slot.first) * mtu;
  const uint32_t length = static_cast<uint32_t>(std::min<uint64_t>(packets * mtu, slot.length - offset));
  if (!engine_.reads.Take(length, expected_count_ == 0)) {
    if (position_ == unacked_) retransmit_.Cancel();  // nothing is asked that could be answered
    queue_pair_.WaitForReads(expected_count_ == 0);
    return false;
  }
  Packet& packet = queue_pair_.AddPacket(PacketOpcode::kReadRequest, position_);
  packet.remote_address = slot.remote_address + offset;
  packet.rkey = slot.rkey;
  packet.dma_length = length;
  packet.ack_request = true;
  since_ack_request_ = 0;
  Expect(packets, length);
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
  if (expected_count_ == depth) return false;
  const bool swap = slot.opcode == Opcode::kCompareSwap;
  Packet& packet = queue_pair_.AddPacket(swap ? PacketOpcode::kCompareSwap : PacketOpcode::kFetchAdd, position_);
  packet.remote_address = slot.remote_address;
  packet.rkey = slot.rkey;
  packet.swap_or_add = slot.swap_or_add;
  packet.compare = slot.compare;
  packet.ack_request = true;
  since_ack_request_ = 0;
  Expect(1, 0);
  share->Spend(0);
  Sent(1);
  return true;
}

bool Requester::MayRead(const SendSlot& slot, uint32_t offset, uint32_t length) const {
  if (slot.is_inline || length == 0) return true;
  for (uint32_t i = 0; i < slot.sge_count && length > 0; ++i) {
    const Sge& sge = slot.sges[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    if (!engine_.keys.LocalAllows(queue_pair_.domain(), sge, false)) return false;
    length -= std::min(length, sge.length - offset);
    offset = 0;
  }
  return true;
}

void Requester::Gather(const SendSlot& slot, uint32_t offset, uint32_t length, Packet* packet) const {
  if (length == 0) return;
  if (slot.is_inline) {
    packet->payload[packet->slices++] = {sends_.inline_at(cursor_) + offset, length};
    return;
  }
  for (uint32_t i = 0; i < slot.sge_count && length > 0; ++i) {
    const Sge& sge = slot.sges[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const uint32_t part = std::min(length, sge.length - offset);
    packet->payload[packet->slices++] = {sge.address + offset, part};
    engine_.outbox.Uses(sge.lkey);
    length -= part;
    offset = 0;
  }
}

// Also where others go next: the turn after that may have to wait for room that only acknowledgements give back.
bool Requester::WantsAck(bool last_of_message, const Share& share) {
  ++since_ack_request_;
  const uint32_t interval = std::max(1u, std::min(kMaxPacketsPerAck, window_ / kAcksPerWindow));
  const bool window_full = position_ + 1 - unacked_ >= window_;
  const bool turn_ends = share.spent() || engine_.outbox.full() || !engine_.sends.room();
  if (!last_of_message && !window_full && !turn_ends && since_ack_request_ < interval) return false;
  since_ack_request_ = 0;
  return true;
}

void Requester::Sent(uint64_t packets) {
  if (position_ < sent_) {
    ++queue_pair_.counters.packets_retransmitted;
    engine_.Trace(base::TraceKind::kRetransmit, ToPsn(position_), packets);
  } else if (!timing_ && since_ack_request_ == 0) {
    timing_ = true;
    timed_ = position_;
    timed_at_ = engine_.alarms.now();
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

void Requester::Expect(uint64_t packets, uint64_t bytes) {
  expected_[(expected_first_ + expected_count_++) % kMaxReads] = {position_ + packets, bytes};
}

void Requester::PopExpected() {
  while (expected_count_ > 0 && expected_[expected_first_].end <= unacked_) {
    engine_.reads.GiveBack(expected_[expected_first_].bytes);
    expected_first_ = (expected_first_ + 1) % kMaxReads;
    --expected_count_;
  }
}

// Those that went before going back were given back then: acknowledged late, they cost nothing any more.
void Requester::GiveBackSends(uint64_t packets) {
  const uint64_t held = std::min(packets, charged_);
  charged_ -= held;
  engine_.sends.GiveBack(held);
}

void Requester::ForgetExpected() {
  for (; expected_count_ > 0; --expected_count_) {
    engine_.reads.GiveBack(expected_[expected_first_].bytes);
    expected_first_ = (expected_first_ + 1) % kMaxReads;
  }
}

}  // namespace tokamak::verbs::soft
