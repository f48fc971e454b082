#include "lib/verbs/soft/rc/connected_core.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/rc/psn.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::soft {
namespace {

bool IsPathMtu(uint32_t mtu) { return mtu >= kMinMtu && mtu <= kMaxMtu && (mtu & (mtu - 1)) == 0; }

// Longer than any rate asks for; what is further away is long past, see base::Time.
constexpr base::Duration kLongestGap = base::Seconds(10);

absl::Status CheckReliability(const ReliabilityOptions& reliability, const Limits& limits) {
  const bool forever = reliability.rnr_retry_count == kRnrRetryForever;
  if (reliability.retry_count > kMaxRetryCount || (reliability.rnr_retry_count > kMaxRetryCount && !forever)) {
    return absl::InvalidArgumentError(absl::StrCat("retry counts end at ", kMaxRetryCount));
  }
  if (reliability.reads_outstanding > limits.max_reads || reliability.reads_served > limits.max_reads) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", limits.max_reads, " READs in flight"));
  }
  return absl::OkStatus();
}

absl::Status WrongState(QueuePairState from, QueuePairState to) {
  return absl::FailedPreconditionError(absl::StrCat("no step from ", ToString(from), " to ", ToString(to)));
}

}  // namespace

ConnectedCore::ConnectedCore(NicState& nic_state, QueuePairParts parts, const QueuePairOptions& options,
                             std::unique_ptr<Congestion> congestion)
    : QueuePairCore(nic_state, std::move(parts)),
      sends(options.max_send_requests, options.max_sges, options.max_inline),
      life_(nic_state.keys.BeginLife()),
      congestion_(std::move(congestion)),
      paces_(congestion_->paces()),
      ecn_(congestion_->reacts_to_marks() ? Ecn::kCapable0 : Ecn::kNotCapable),
      requester_(nic_state, *this, *congestion_),
      responder_(nic_state, *this),
      pace_(nic_state.alarms, [this]() REQUIRES_NIC_MUTEX { MarkReady(); }) {
  attributes_.remote_access = options.remote_access;
}

ConnectedCore::~ConnectedCore() {
  responder_.AcknowledgeLast();
  requester_.Reset();
  responder_.Reset();
  nic_state_.keys.EndLife(life_);
}

absl::Status ConnectedCore::Modify(QueuePairState to, const QueuePairAttributes& attributes, const Limits& limits) {
  switch (to) {
    case QueuePairState::kReset:
      ToReset();
      return absl::OkStatus();
    case QueuePairState::kInit:
      return ToInit(attributes);
    case QueuePairState::kReadyToReceive:
      return ToReadyToReceive(attributes, limits);
    case QueuePairState::kReadyToSend:
      return ToReadyToSend(attributes, limits);
    case QueuePairState::kError:
      Fail(CompletionStatus::kFlushed, CompletionStatus::kFlushed, 0);
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError("no such state");
}

void ConnectedCore::ToReset() {
  nic_state_.notifiers.Remove(turns_);
  pace_.Cancel();
  requester_.Reset();
  responder_.Reset();
  sends.ReleaseAll();
  receives.ReleaseAll();
  ForgetCompletions();
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropOwner(number());
  nic_state_.keys.EndLife(life_);
  life_ = nic_state_.keys.BeginLife();  // windows bound for this peer are not for the next one
  Enter(QueuePairState::kReset);
}

void ConnectedCore::ForgetCompletions() {
  send_ring().Forget(number(), sends.released());
  receive_ring().Forget(number(), (shared_receives() != nullptr ? shared_receives()->queue : receives).released());
}

absl::Status ConnectedCore::ToInit(const QueuePairAttributes& attributes) {
  if (state() != QueuePairState::kReset && state() != QueuePairState::kInit) {
    return WrongState(state(), QueuePairState::kInit);
  }
  attributes_.remote_access = attributes.remote_access;
  Enter(QueuePairState::kInit);
  return absl::OkStatus();
}

absl::Status ConnectedCore::ToReadyToReceive(const QueuePairAttributes& attributes, const Limits& limits) {
  if (state() != QueuePairState::kInit) return WrongState(state(), QueuePairState::kReadyToReceive);
  if (!IsPathMtu(attributes.path_mtu) || attributes.path_mtu > limits.active_mtu) {
    return absl::InvalidArgumentError(
        absl::StrCat("path MTU ", attributes.path_mtu, ": not 256 to 4096, or above the port's ", limits.active_mtu));
  }
  if (attributes.peer_number > kPsnMask || attributes.receive_psn > kPsnMask) {
    return absl::InvalidArgumentError("queue pair numbers and PSNs have 24 bits");
  }
  if (absl::Status s = CheckReliability(attributes.reliability, limits); !s.ok()) return s;
  const Access remote_access = attributes_.remote_access;
  attributes_ = attributes;
  attributes_.remote_access = remote_access;
  attributes_.peer = ToFabricAddress(attributes.peer);
  taken_before_ = taken();
  responder_.Start(attributes.receive_psn);
  Enter(QueuePairState::kReadyToReceive);
  return absl::OkStatus();
}

absl::Status ConnectedCore::ToReadyToSend(const QueuePairAttributes& attributes, const Limits& limits) {
  if (state() != QueuePairState::kReadyToReceive) return WrongState(state(), QueuePairState::kReadyToSend);
  if (attributes.send_psn > kPsnMask) return absl::InvalidArgumentError("PSNs have 24 bits");
  if (absl::Status s = CheckReliability(attributes.reliability, limits); !s.ok()) return s;
  const ReliabilityOptions& wanted = attributes.reliability;
  attributes_.send_psn = attributes.send_psn;
  attributes_.reliability.ack_timeout = wanted.ack_timeout;
  attributes_.reliability.retry_count = wanted.retry_count;
  attributes_.reliability.rnr_retry_count = wanted.rnr_retry_count;
  attributes_.reliability.reads_outstanding = wanted.reads_outstanding;
  requester_.Start(attributes.send_psn);
  Enter(QueuePairState::kReadyToSend);
  return absl::OkStatus();
}

void ConnectedCore::Fail(CompletionStatus send_status, CompletionStatus receive_status, uint32_t provider_code) {
  if (failed()) return;
  // The state first: a request posted from now on is either seen by the flush or rings for another.
  Enter(QueuePairState::kError);
  nic_state_.keys.EndLife(life_);
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropOwner(number());
  nic_state_.notifiers.Remove(turns_);
  responder_.AcknowledgeLast();
  requester_.Flush(send_status, provider_code);
  responder_.Flush(receive_status);
  if (watched) nic_state_.on_error(number());
}

void ConnectedCore::Receive(const Packet& packet) {
  if (HasDeth(packet.opcode)) return nic_state_.Drop(packet, &nic_state_.counters.dropped_unknown_opcode);
  if (packet.peer.ip != peer().ip) return nic_state_.Drop(packet, &nic_state_.counters.dropped_wrong_peer);
  ++counters.packets_received;
  counters.bytes_received += packet.payload_length();
  const QueuePairState now = state();
  if (packet.ecn == Ecn::kMarked) OnMarked(packet);
  if (packet.opcode == PacketOpcode::kCongestionNotification) {
    ++counters.notifications_received;
    congestion_->OnNotification(nic_state_.alarms.now());
    return;
  }
  if (IsRequest(packet.opcode)) {
    if (now == QueuePairState::kReadyToReceive || now == QueuePairState::kReadyToSend) {
      responder_.OnRequest(packet);
    } else if (now == QueuePairState::kError) {
      responder_.OnRequestInError(packet);
    } else {
      ++counters.requests_refused;
    }
    return;
  }
  if (now != QueuePairState::kReadyToSend) {
    ++counters.answers_stale;
    return;
  }
  nic_state_.touched.Add(turns_);
  if (packet.opcode == PacketOpcode::kAcknowledge || packet.opcode == PacketOpcode::kSelectiveNak) {
    requester_.OnAcknowledge(packet);
  } else if (packet.opcode == PacketOpcode::kAtomicAcknowledge) {
    requester_.OnAtomicAcknowledge(packet);
  } else {
    requester_.OnReadResponse(packet);
  }
}

void ConnectedCore::FinishTurn() { requester_.FinishTurn(); }

void ConnectedCore::Answer() {
  if (failed()) {
    requester_.Flush(CompletionStatus::kFlushed, 0);
    responder_.Flush(CompletionStatus::kFlushed);
    return;
  }
  MarkReady();
}

bool ConnectedCore::Emit() {
  Share share;
  const bool answers = responder_.Emit(&share);
  const bool requests = requester_.Emit(&share);
  return answers || requests;
}

// DCQCN's notification point.
void ConnectedCore::OnMarked(const Packet& packet) {
  ++counters.marks_received;
  const bool connected = state() == QueuePairState::kReadyToReceive || state() == QueuePairState::kReadyToSend;
  if (!connected || !IsData(packet.opcode)) return;
  const base::Time now = nic_state_.alarms.now();
  const base::Duration since = now - notified_at_;
  if (notified_ && since >= base::Duration() && since < nic_state_.options.notification_interval) return;
  notified_ = true;
  notified_at_ = now;
  nic_state_.notifiers.Add(turns_);
}

bool ConnectedCore::Notify(Port& port) {
  Packet packet;
  packet.opcode = PacketOpcode::kCongestionNotification;
  packet.destination = attributes_.peer_number;
  packet.peer = attributes_.peer;
  packet.source_port = source_port();
  packet.dscp = kNotificationDscp;
  if (port.Send(absl::MakeConstSpan(&packet, 1)) == 0) {
    nic_state_.notifiers.AddFirst(turns_);
    return false;
  }
  ++counters.packets_sent;
  ++counters.notifications_sent;
  nic_state_.Trace(base::TraceKind::kPacketSent, packet.psn, 0);
  return true;
}

bool ConnectedCore::Pace() {
  if (pace_.set()) return false;
  const base::Time now = nic_state_.alarms.now();
  const base::Duration wait = congestion_->NextSend(now) - now;
  if (wait <= base::Duration() || wait > kLongestGap) return true;
  pace_.Set(wait);
  return false;
}

Packet& ConnectedCore::AddPacket(PacketOpcode opcode, uint64_t sequence) {
  Packet& packet = AddPacketTo(attributes_.peer, opcode);
  packet.destination = attributes_.peer_number;
  packet.psn = ToPsn(sequence);
  packet.ecn = ecn_;
  packet.dscp = nic_state_.options.dscp;
  return packet;
}

}  // namespace tokamak::verbs::soft
