#include "lib/verbs/soft/cm/connection_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/check.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::soft {
namespace {

using Phase = ConnectionPhase;
using Kind = ConnectionEvent::Kind;

// Times that a busy peer may make us ask again, each with a new cookie.
constexpr int kMaxCookies = 3;

bool LegalStep(Phase from, Phase to) {
  switch (to) {
    case Phase::kIdle:
      return false;
    case Phase::kReqSent:
    case Phase::kReqReceived:
      return from == Phase::kIdle;
    case Phase::kRepReceived:
      return from == Phase::kReqSent;
    case Phase::kRepSent:
      return from == Phase::kReqReceived;
    case Phase::kEstablished:
      return from == Phase::kReqSent || from == Phase::kRepReceived || from == Phase::kRepSent;
    case Phase::kFailed:
      return from == Phase::kRepSent || from == Phase::kEstablished;
    case Phase::kDreqSent:
      return from == Phase::kRepReceived || from == Phase::kRepSent || from == Phase::kEstablished ||
             from == Phase::kFailed;
    case Phase::kTimeWait:
      return from != Phase::kIdle && from != Phase::kTimeWait && from != Phase::kClosed;
    case Phase::kClosed:
      return from == Phase::kTimeWait;
  }
  return false;
}

template <size_t kSize>
AnyData AllBytes(const std::array<uint8_t, kSize>& data) {
  AnyData all{};
  std::copy(data.begin(), data.end(), all.begin());
  return all;
}

}  // namespace

const char* ToString(ConnectionPhase phase) {
  switch (phase) {
    case Phase::kIdle:
      return "Idle";
    case Phase::kReqSent:
      return "ReqSent";
    case Phase::kRepReceived:
      return "RepReceived";
    case Phase::kReqReceived:
      return "ReqReceived";
    case Phase::kRepSent:
      return "RepSent";
    case Phase::kEstablished:
      return "Established";
    case Phase::kFailed:
      return "Failed";
    case Phase::kDreqSent:
      return "DreqSent";
    case Phase::kTimeWait:
      return "TimeWait";
    case Phase::kClosed:
      return "Closed";
  }
  return "?";
}

ConnectionActions ConnectionState::Connect(const ConnectionOffer& offer) {
  CHECK(!passive_);
  ConnectionActions actions;
  offer_ = offer;
  path_mtu_ = offer.max_path_mtu;
  Enter(Phase::kReqSent, &actions);
  actions.limit_after = offer.deadline;
  SendReq(&actions);
  return actions;
}

ConnectionActions ConnectionState::AskAgain(uint32_t local_id, uint64_t transaction) {
  CHECK(phase_ == Phase::kReqSent);
  ConnectionActions actions;
  identity_.local_id = local_id;
  identity_.transaction = transaction;
  repeats_ = 0;
  SendReq(&actions);
  return actions;
}

ConnectionActions ConnectionState::Confirm() {
  CHECK(phase_ == Phase::kRepReceived);
  ConnectionActions actions;
  Enter(Phase::kEstablished, &actions);
  SendRtu(&actions);
  return actions;
}

ConnectionActions ConnectionState::Begin() {
  CHECK(passive_);
  ConnectionActions actions;
  remote_id_ = req_.local_id;
  remote_queue_pair_ = req_.queue_pair;
  send_psn_ = req_.starting_psn;
  path_mtu_ = MtuOf(req_.mtu_code);
  Enter(Phase::kReqReceived, &actions);
  actions.limit_after = kMaxAnswerTime;
  return actions;
}

ConnectionActions ConnectionState::Accept(const ConnectionOffer& offer) {
  CHECK_GE(offer.max_path_mtu, path_mtu_);
  ConnectionActions actions;
  offer_ = offer;
  AgreeOnReads(req_.responder_resources, req_.initiator_depth, &offer_.reliability);
  rep_ = MakeRep(offer_, req_, identity_.ca_guid, identity_.local_id);
  Enter(Phase::kRepSent, &actions);
  CHECK(MaySpeak());
  actions.walk = Walk::kReadyToReceive;
  actions.limit_after = offer.deadline;
  actions.repeat_after = RepeatDelay(0, offer.deadline);
  Send(rep_, &actions);
  return actions;
}

ConnectionActions ConnectionState::Reject(const RejMad& rej) {
  CHECK(phase_ == Phase::kReqReceived);
  ConnectionActions actions;
  rej_ = rej;
  rej_->local_id = identity_.local_id;
  Send(*rej_, &actions);
  WaitOut(&actions);
  return actions;
}

ConnectionActions ConnectionState::Drop() {
  ConnectionActions actions;
  switch (phase_) {
    case Phase::kReqSent:
      GiveUpAsking(&actions);
      actions.walk = Walk::kError;
      break;
    case Phase::kReqReceived:
      return Reject(MakeRej(req_, RejectReason::kConsumer));
    case Phase::kRepReceived:
    case Phase::kRepSent:
    case Phase::kEstablished:
      Disconnect(&actions);
      actions.walk = Walk::kError;
      break;
    case Phase::kFailed:
      Disconnect(&actions);
      break;
    default:
      break;
  }
  return actions;
}

ConnectionActions ConnectionState::OnRepeat(bool heard) {
  ConnectionActions actions;
  if (phase_ == Phase::kEstablished) {
    question_.reset();
    if (!passive_ && !heard) RepeatRtu(&actions);
    return actions;
  }
  if (repeats_ >= kMaxCmRetries) {
    if (phase_ == Phase::kDreqSent) WaitOut(&actions);
    return actions;
  }
  ++repeats_;
  if (!MaySpeak()) {
    if (phase_ == Phase::kDreqSent) WaitOut(&actions);
    return actions;
  }
  if (phase_ == Phase::kReqSent) {
    SendReq(&actions);
  } else if (phase_ == Phase::kRepSent) {
    Send(rep_, &actions);
    actions.repeat_after = RepeatDelay(repeats_, offer_.deadline);
  } else if (phase_ == Phase::kDreqSent) {
    SendDreq(&actions);
  }
  return actions;
}

ConnectionActions ConnectionState::OnLimit() {
  ConnectionActions actions;
  switch (phase_) {
    case Phase::kReqSent:
      End(Kind::kUnreachable,
          absl::DeadlineExceededError(
              cookies_ > 0
                  ? absl::StrFormat("%s had no room for another connection in %.3g s: try again later",
                                    identity_.peer.ToString(), offer_.deadline.seconds())
                  : absl::StrFormat("%s did not answer %d connection requests in %.3g s: is the host up, and does its "
                                    "RoCE port get packets?",
                                    identity_.peer.ToString(), repeats_ + 1, offer_.deadline.seconds())),
          &actions);
      GiveUpAsking(&actions);
      break;
    case Phase::kRepReceived:
      End(Kind::kUnreachable,
          absl::DeadlineExceededError("the answer to a connection request was not confirmed in time"), &actions);
      Disconnect(&actions);
      break;
    case Phase::kReqReceived:
      return Reject(MakeRej(req_, RejectReason::kTimeout));
    case Phase::kRepSent:
      End(Kind::kUnreachable,
          absl::DeadlineExceededError(absl::StrFormat("%s asked for a connection, but did not confirm it in %.3g s",
                                                      identity_.peer.ToString(), offer_.deadline.seconds())),
          &actions);
      Disconnect(&actions);
      break;
    case Phase::kFailed:
      Disconnect(&actions);
      break;
    case Phase::kTimeWait:
      Enter(Phase::kClosed, &actions);
      break;
    default:
      break;
  }
  return actions;
}

ConnectionActions ConnectionState::OnFirstData() {
  ConnectionActions actions;
  if (phase_ == Phase::kRepSent) Establish(std::nullopt, &actions);
  return actions;
}

ConnectionActions ConnectionState::OnQueuePairError(absl::Status status) {
  ConnectionActions actions;
  switch (phase_) {
    case Phase::kReqSent:
      End(Kind::kDisconnected, std::move(status), &actions);
      GiveUpAsking(&actions);
      break;
    case Phase::kRepSent:
    case Phase::kEstablished:
      End(Kind::kDisconnected, std::move(status), &actions);
      Enter(Phase::kFailed, &actions);
      actions.limit_after = AckTimeout(kFailedCode);
      break;
    default:
      break;
  }
  actions.walk = Walk::kStay;
  return actions;
}

ConnectionActions ConnectionState::OnDoubt(uint64_t transaction) {
  ConnectionActions actions;
  switch (phase_) {
    case Phase::kReqReceived:
      return Reject(MakeRej(req_, RejectReason::kStaleConnection));
    case Phase::kRepSent:
      EndForgotten(&actions);
      Disconnect(&actions);
      break;
    case Phase::kEstablished:
      if (question_) break;
      question_ = transaction;
      actions.send = Mad{transaction, MakeQuestion(identity_.local_id, remote_id_)};
      actions.repeat_after = RepeatDelay(0, base::Duration());
      break;
    default:
      break;
  }
  return actions;
}

QueuePairAttributes ConnectionState::attributes() const {
  QueuePairAttributes attributes;
  attributes.peer_number = remote_queue_pair_;
  attributes.receive_psn = offer_.receive_psn;
  attributes.path_mtu = path_mtu_;
  attributes.send_psn = send_psn_;
  attributes.reliability = offer_.reliability;
  return attributes;
}

void ConnectionState::Enter(ConnectionPhase phase, ConnectionActions* actions) {
  CHECK(LegalStep(phase_, phase)) << ToString(phase_) << " to " << ToString(phase);
  phase_ = phase;
  repeats_ = 0;
  question_.reset();
  actions->stop_timers = true;
  actions->repeat_after.reset();
  actions->limit_after.reset();
}

void ConnectionState::Send(decltype(Mad::body) body, ConnectionActions* actions) const {
  actions->send = Mad{identity_.transaction, std::move(body)};
}

void ConnectionState::SendReq(ConnectionActions* actions) {
  ConnectionOffer offer = offer_;
  offer.max_path_mtu = path_mtu_;
  req_ = MakeReq(offer, identity_.local, identity_.peer, identity_.ca_guid, identity_.local_id);
  Send(req_, actions);
  actions->repeat_after = RepeatDelay(repeats_, offer_.deadline);
}

// Counts a message that the peer did not just ask for. Returns false if it is one too many.
bool ConnectionState::MaySpeak() {
  if (!passive_ || confirmed_) return true;
  if (unconfirmed_ >= kMaxUnconfirmed) return false;
  ++unconfirmed_;
  return true;
}

// Repeats the RTU until the peer is heard, for longer than a peer waits for it: an RTU has no
// answer, and the peer asks at most kMaxUnconfirmed times. A peer that gave up sends a REJ.
void ConnectionState::RepeatRtu(ConnectionActions* actions) {
  if (repeats_ >= kMaxCmRetries) return;
  ++repeats_;
  Send(RtuMad{identity_.local_id, remote_id_}, actions);
  actions->repeat_after = RepeatDelay(repeats_, offer_.deadline);
}

void ConnectionState::SendDreq(ConnectionActions* actions) {
  Send(DreqMad{identity_.local_id, remote_id_, remote_queue_pair_}, actions);
  actions->repeat_after = RepeatDelay(repeats_, base::Duration());
}

void ConnectionState::SendRtu(ConnectionActions* actions) {
  Send(RtuMad{identity_.local_id, remote_id_}, actions);
  actions->repeat_after = RepeatDelay(0, offer_.deadline);
}

void ConnectionState::Establish(const std::optional<AnyData>& private_data, ConnectionActions* actions) {
  Enter(Phase::kEstablished, actions);
  confirmed_ = true;
  actions->walk = Walk::kReadyToSend;
  TellEstablished(private_data, actions);
}

void ConnectionState::TellEstablished(const std::optional<AnyData>& private_data, ConnectionActions* actions) const {
  ConnectionNews news{Kind::kEstablished, absl::OkStatus(), private_data, path_mtu_};
  news.peer_queue_pair = remote_queue_pair_;
  actions->news = std::move(news);
}

void ConnectionState::Disconnect(ConnectionActions* actions) {
  if (!MaySpeak()) return WaitOut(actions);
  Enter(Phase::kDreqSent, actions);
  SendDreq(actions);
}

// Makes the peer forget a half-open connection, which it finds by our GUID and ID: it does not know
// our queue pair's other end yet.
void ConnectionState::GiveUpAsking(ConnectionActions* actions) {
  RejMad rej;
  rej.local_id = identity_.local_id;
  rej.rejects = MadKind::kOther;
  rej.reason = RejectReason::kTimeout;
  rej.information_length = 8;
  for (int i = 0; i < 8; ++i) rej.information[i] = static_cast<uint8_t>(identity_.ca_guid >> (56 - 8 * i));
  Send(rej, actions);
  WaitOut(actions);
}

void ConnectionState::WaitOut(ConnectionActions* actions) {
  Enter(Phase::kTimeWait, actions);
  actions->limit_after = AckTimeout(kTimeWaitCode);
}

void ConnectionState::End(ConnectionEvent::Kind kind, absl::Status status, ConnectionActions* actions) {
  actions->walk = Walk::kError;
  actions->news = ConnectionNews{kind, std::move(status)};
}

void ConnectionState::EndForgotten(ConnectionActions* actions) {
  End(Kind::kDisconnected,
      absl::AbortedError(
          absl::StrCat(identity_.peer.ToString(), " forgot this connection: it may have been restarted")),
      actions);
}

// ---- Answers to the peer's messages.

ConnectionActions ConnectionState::OnMad(const Mad& mad) {
  ConnectionActions actions;
  if (phase_ == Phase::kTimeWait && !std::holds_alternative<ReqMad>(mad.body)) {
    actions.send = AnswerForUnknown(mad);
  } else {
    std::visit([&](const auto& body) { On(body, mad.transaction, &actions); }, mad.body);
  }
  return actions;
}

// Answers repetitions of the REQ that made this connection.
void ConnectionState::On(const ReqMad&, uint64_t, ConnectionActions* actions) {
  if (phase_ == Phase::kRepSent) Send(rep_, actions);
  if (phase_ == Phase::kTimeWait) {
    RejMad rej = rej_.value_or(MakeRej(req_, RejectReason::kStaleConnection));
    rej.local_id = identity_.local_id;
    Send(rej, actions);
  }
}

void ConnectionState::On(const MraMad& mra, uint64_t, ConnectionActions* actions) {
  const bool to_req = phase_ == Phase::kReqSent && mra.answers == MadKind::kReq;
  const bool to_rep = phase_ == Phase::kRepSent && mra.answers == MadKind::kRep;
  confirmed_ = confirmed_ || to_rep;  // it names the ID that the REP gave
  if (to_req || to_rep) actions->repeat_after = AckTimeout(mra.service_timeout) + AckTimeout(kCmTimeoutCode);
}

void ConnectionState::On(const RepMad& rep, uint64_t, ConnectionActions* actions) {
  if (phase_ == Phase::kEstablished && !passive_) Send(RtuMad{identity_.local_id, remote_id_}, actions);
  if (phase_ != Phase::kReqSent || rep.local_id == 0 || rep.queue_pair <= 1) return;
  remote_id_ = rep.local_id;
  remote_queue_pair_ = rep.queue_pair;
  send_psn_ = rep.starting_psn;
  AgreeOnReads(rep.responder_resources, rep.initiator_depth, &offer_.reliability);
  rep_ = rep;
  if (offer_.confirms) {
    Enter(Phase::kRepReceived, actions);
    actions->limit_after = kMaxAnswerTime;
    TellEstablished(AllBytes(rep.private_data), actions);
    return;
  }
  Establish(AllBytes(rep.private_data), actions);
  SendRtu(actions);
}

void ConnectionState::On(const RtuMad&, uint64_t, ConnectionActions* actions) {
  confirmed_ = true;  // it names the ID that the REP gave
  if (phase_ == Phase::kRepSent) Establish(std::nullopt, actions);
}

void ConnectionState::On(const RejMad& rej, uint64_t, ConnectionActions* actions) {
  if (phase_ == Phase::kReqSent) {
    if (const uint32_t mtu = SmallerMtu(rej, path_mtu_); mtu != 0) {
      path_mtu_ = mtu;
      actions->ask_again = true;
      return;
    }
  }
  if (phase_ == Phase::kReqSent || phase_ == Phase::kRepSent) {
    End(Kind::kRejected, StatusOf(rej, identity_.peer), actions);
    actions->news->private_data = AllBytes(rej.private_data);
    actions->news->reason = rej.reason;
  } else if (phase_ == Phase::kEstablished || phase_ == Phase::kRepReceived) {
    End(Kind::kDisconnected, StatusOf(rej, identity_.peer), actions);
  }
  WaitOut(actions);
}

void ConnectionState::On(const DreqMad& dreq, uint64_t transaction, ConnectionActions* actions) {
  if (IsQuestion(dreq) && phase_ == Phase::kReqSent && cookies_ < kMaxCookies) {
    ++cookies_;
    actions->ask_again = true;
    actions->transaction = transaction;
  }
  if (dreq.remote_queue_pair != offer_.queue_pair || phase_ == Phase::kReqReceived) return;
  if (phase_ == Phase::kReqSent) {  // the peer's REP was lost, then it lost interest
    const std::string peer = identity_.peer.ToString();
    End(Kind::kRejected, absl::AbortedError(absl::StrCat(peer, " accepted and disconnected at once")), actions);
  } else if (phase_ == Phase::kRepReceived || phase_ == Phase::kRepSent || phase_ == Phase::kEstablished) {
    End(Kind::kDisconnected, absl::OkStatus(), actions);
  }
  actions->send = Mad{transaction, DrepMad{identity_.local_id, dreq.local_id}};
  WaitOut(actions);
}

void ConnectionState::On(const DrepMad&, uint64_t transaction, ConnectionActions* actions) {
  if (phase_ == Phase::kDreqSent) WaitOut(actions);
  if (phase_ != Phase::kEstablished || question_ != transaction) return;
  EndForgotten(actions);
  WaitOut(actions);
}

}  // namespace tokamak::verbs::soft
