// How a connection answers its peer's messages; see connection_state.cc for the rest.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/connection_state.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::soft {
namespace {

using Phase = ConnectionPhase;
using Kind = ConnectionEvent::Kind;

// What the application sees of a message's private data.
template <size_t kSize>
UserData FirstBytes(const std::array<uint8_t, kSize>& data) {
  UserData user;
  std::copy_n(data.begin(), user.size(), user.begin());
  return user;
}

}  // namespace

ConnectionActions ConnectionState::OnMad(const Mad& mad) {
  ConnectionActions actions;
  if (phase_ == Phase::kTimeWait && !std::holds_alternative<ReqMad>(mad.body)) {
    actions.send = AnswerForUnknown(mad);
  } else {
    std::visit([&](const auto& body) { On(body, mad.transaction, &actions); }, mad.body);
  }
  return actions;
}

// Only repetitions of the REQ that made a passive connection come here.
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
  if (to_req || to_rep) actions->repeat_after = AckTimeout(mra.service_timeout) + AckTimeout(kCmTimeoutCode);
}

void ConnectionState::On(const RepMad& rep, uint64_t, ConnectionActions* actions) {
  if (phase_ == Phase::kEstablished && !passive_) Send(RtuMad{identity_.local_id, remote_id_}, actions);
  if (phase_ != Phase::kReqSent || rep.local_id == 0 || rep.queue_pair <= 1) return;
  remote_id_ = rep.local_id;
  remote_queue_pair_ = rep.queue_pair;
  send_psn_ = rep.starting_psn;
  AgreeOnReads(rep.responder_resources, rep.initiator_depth, &offer_.reliability);
  Establish(FirstBytes(rep.private_data), actions);
  Send(RtuMad{identity_.local_id, remote_id_}, actions);
}

void ConnectionState::On(const RtuMad&, uint64_t, ConnectionActions* actions) {
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
    actions->news->private_data = FirstBytes(rej.private_data);
  } else if (phase_ == Phase::kEstablished) {
    End(Kind::kDisconnected, StatusOf(rej, identity_.peer), actions);
  }
  WaitOut(actions);
}

void ConnectionState::On(const DreqMad& dreq, uint64_t transaction, ConnectionActions* actions) {
  if (dreq.remote_queue_pair != offer_.queue_pair || phase_ == Phase::kReqReceived) return;
  if (phase_ == Phase::kReqSent) {  // its REP was lost, and then it lost interest
    const std::string peer = identity_.peer.ToString();
    End(Kind::kRejected, absl::AbortedError(absl::StrCat(peer, " accepted and disconnected at once")), actions);
  } else if (phase_ == Phase::kRepSent || phase_ == Phase::kEstablished) {
    End(Kind::kDisconnected, absl::OkStatus(), actions);
  }
  actions->send = Mad{transaction, DrepMad{identity_.local_id, dreq.local_id}};
  WaitOut(actions);
}

void ConnectionState::On(const DrepMad&, uint64_t, ConnectionActions* actions) {
  if (phase_ == Phase::kDreqSent) WaitOut(actions);
}

}  // namespace tokamak::verbs::soft
