#include "lib/verbs/soft/ud/datagram_core.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/state/gather.h"
#include "lib/verbs/soft/state/scatter.h"
#include "lib/verbs/soft/ud/route_header.h"

namespace tokamak::verbs::soft {

DatagramCore::DatagramCore(NicState& nic_state, QueuePairParts parts, const DatagramQueuePairOptions& options,
                           const Address& port, uint32_t mtu)
    : QueuePairCore(nic_state, std::move(parts)),
      sends(options.max_send_requests, options.max_sges, options.max_inline),
      port_(port),
      mtu_(mtu),
      qkey_(options.qkey),
      receives_(nic_state, *this) {}

DatagramCore::~DatagramCore() { receives_.Forget(); }

absl::Status DatagramCore::Modify(QueuePairState to, const DatagramAttributes& attributes) {
  const QueuePairState from = state();
  switch (to) {
    case QueuePairState::kReset:
      Reset();
      return absl::OkStatus();
    case QueuePairState::kError:
      Fail(CompletionStatus::kFlushed, CompletionStatus::kFlushed, 0);
      return absl::OkStatus();
    case QueuePairState::kInit:
    case QueuePairState::kReadyToReceive:
    case QueuePairState::kReadyToSend:
      break;
  }
  const bool next = static_cast<int>(to) == static_cast<int>(from) + 1;
  const bool stays = to == from && to != QueuePairState::kReadyToReceive;
  if (!next && !stays) {
    return absl::FailedPreconditionError(absl::StrCat("no step from ", ToString(from), " to ", ToString(to)));
  }
  if (next && to == QueuePairState::kReadyToSend) {
    if (attributes.send_psn > kPsnMask) return absl::InvalidArgumentError("PSNs have 24 bits");
    psn_ = attributes.send_psn;
  }
  qkey_ = attributes.qkey.value_or(qkey_);
  Enter(to);
  return absl::OkStatus();
}

void DatagramCore::Reset() {
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropOwner(number());
  nic_state_.departing.Remove(turns_);
  in_outbox_ = 0;
  oldest_ = cursor_ = sends.tail();
  receives_.Forget();
  sends.ReleaseAll();
  receives.ReleaseAll();
  ForgetCompletions();
  Enter(QueuePairState::kReset);
}

void DatagramCore::ForgetCompletions() {
  send_ring().Forget(number(), sends.released());
  receive_ring().Forget(number(), (shared_receives() != nullptr ? shared_receives()->queue : receives).released());
}

void DatagramCore::Fail(CompletionStatus send_status, CompletionStatus receive_status, uint32_t provider_code) {
  if (failed()) return;
  // The state first: a request posted from now on is either seen by the flush or rings for another.
  Enter(QueuePairState::kError);
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropOwner(number());
  nic_state_.departing.Remove(turns_);
  in_outbox_ = 0;
  FlushSends(send_status, provider_code);
  receives_.Flush(receive_status);
}

void DatagramCore::Answer() {
  if (failed()) {
    FlushSends(CompletionStatus::kFlushed, 0);
    receives_.Flush(CompletionStatus::kFlushed);
    return;
  }
  MarkReady();
}

// ---- Sending.

bool DatagramCore::Emit() {
  if (state() != QueuePairState::kReadyToSend) return false;
  Share share;
  for (; cursor_ < sends.tail(); ++cursor_) {
    if (share.spent() || nic_state_.outbox.full()) return true;
    if (!Leaves(sends.at(cursor_), &share)) return false;
  }
  return false;
}

// Returns false if request cursor_ cannot be sent; it fails once those before it are complete.
bool DatagramCore::Leaves(DatagramSlot& slot, Share* share) {
  slot.skipped = slot.length > mtu_;
  if (slot.skipped) {
    ++counters.datagrams_not_sent;
    share->Spend(0);
    if (in_outbox_ == 0) CompleteOldest(CompletionStatus::kSuccess, 0);
    return true;
  }
  if (!MayGather(nic_state_.keys, domain(), slot, 0, slot.length)) {
    if (in_outbox_ == 0) Fail(CompletionStatus::kLocalProtection, CompletionStatus::kFlushed, 0);
    return false;
  }
  AddPacket(slot, share);
  return true;
}

void DatagramCore::AddPacket(const DatagramSlot& slot, Share* share) {
  Packet& packet = AddPacketTo(
      slot.peer, slot.has_immediate ? PacketOpcode::kDatagramSendOnlyWithImm : PacketOpcode::kDatagramSendOnly);
  packet.destination = slot.queue_pair_number;
  packet.psn = psn_;
  packet.qkey = (slot.qkey & kControlledQkey) != 0 ? qkey_ : slot.qkey;
  packet.source_queue_pair = number();
  packet.immediate = slot.immediate;
  packet.solicited = slot.solicited;
  SetTrafficClass(slot.traffic_class, &packet);
  if (packet.dscp == 0) packet.dscp = nic_state_.options.dscp;
  Gather(nic_state_.keys, slot, sends.inline_at(cursor_), 0, slot.length, nic_state_.outbox, &packet);
  counters.bytes_sent += slot.length;
  psn_ = (psn_ + 1) & kPsnMask;
  share->Spend(slot.length);
  ++in_outbox_;
  nic_state_.departing.Add(turns_);
}

void DatagramCore::OnDeparture() {
  CompleteDeparted();
  if (in_outbox_ > 0) nic_state_.departing.Add(turns_);
  if (cursor_ < sends.tail()) MarkReady();
}

void DatagramCore::CompleteDeparted() {
  for (size_t gone = in_outbox_ - nic_state_.outbox.CountOf(number()); oldest_ < cursor_;) {
    if (!sends.at(oldest_).skipped) {
      if (gone == 0) return;
      --gone;
      --in_outbox_;
    }
    CompleteOldest(CompletionStatus::kSuccess, 0);
  }
}

void DatagramCore::CompleteOldest(CompletionStatus status, uint32_t provider_code) {
  const DatagramSlot& slot = sends.at(oldest_++);
  if (status == CompletionStatus::kSuccess && !slot.signaled) return;
  Completion completion;
  completion.id = slot.id;
  completion.status = status;
  completion.opcode = CompletionOpcode::kSend;
  completion.byte_count = slot.length;
  completion.queue_pair_number = number();
  completion.provider_code = provider_code;
  nic_state_.Push(send_ring(), completion, sends.released(), oldest_, false);
}

void DatagramCore::FlushSends(CompletionStatus first, uint32_t provider_code) {
  for (const uint64_t tail = sends.tail(); oldest_ < tail; first = CompletionStatus::kFlushed) {
    CompleteOldest(first, first == CompletionStatus::kFlushed ? 0 : provider_code);
  }
  cursor_ = std::max(cursor_, oldest_);
}

// ---- Receiving.

void DatagramCore::Receive(const Packet& packet) {
  const bool notification = packet.opcode == PacketOpcode::kCongestionNotification;
  if (!HasDeth(packet.opcode) && !notification) {
    return nic_state_.Drop(packet, &nic_state_.counters.dropped_unknown_opcode);
  }
  if (!notification && packet.qkey != qkey_) return nic_state_.Drop(packet, &nic_state_.counters.dropped_wrong_qkey);
  const uint32_t length = packet.payload_length();
  ++counters.packets_received;
  counters.bytes_received += length;
  if (packet.ecn == Ecn::kMarked) ++counters.marks_received;
  if (notification) {
    ++counters.notifications_received;  // datagrams are not held back
  } else if (!may_receive()) {
    ++counters.requests_refused;
  } else if (!receives_.available()) {
    ++counters.datagrams_unreceived;
  } else if (kGlobalRouteHeader + length > receives_.next_length()) {
    ++counters.datagrams_too_long;
  } else {
    Take(packet, kGlobalRouteHeader + length);
  }
}

void DatagramCore::Take(const Packet& packet, uint32_t length) {
  uint8_t header[kGlobalRouteHeader];
  WriteRouteHeader(packet, port_, header);
  std::array<PayloadSlice, kMaxPayloadSlices + 1> pieces;
  pieces[0] = {header, kGlobalRouteHeader};
  std::copy_n(packet.payload, packet.slices, pieces.begin() + 1);

  receives_.Take();
  const ReceiveSlot& slot = receives_.present();
  const ScatterResult result = Scatter(nic_state_.keys, domain(), absl::MakeConstSpan(slot.sges, slot.sge_count), 0,
                                       absl::MakeConstSpan(pieces.data(), packet.slices + 1));
  if (result != ScatterResult::kDone) {
    ++counters.requests_rejected;
    Fail(CompletionStatus::kFlushed,
         result == ScatterResult::kNoKey ? CompletionStatus::kLocalProtection : CompletionStatus::kLocalAccess, 0);
    return;
  }
  ++counters.requests_executed;
  Completion completion;
  completion.opcode = CompletionOpcode::kReceive;
  completion.byte_count = length;
  completion.has_immediate = HasImmediate(packet.opcode);
  completion.immediate = packet.immediate;
  completion.source_queue_pair = packet.source_queue_pair;
  receives_.Complete(completion, packet.solicited);
}

}  // namespace tokamak::verbs::soft
