// ConnectionState is one connection as the protocol sees it: it takes messages, calls and expiries,
// and returns what to do next.
//
// It has no clock, timer, queue pair or lock: its owner carries out ConnectionActions, in the order
// of their fields. docs/connection.md draws the states. Each message that a peer may have had to
// repeat is answered, so whatever a network loses, repeats or reorders, both sides agree in the end
// or give up.
//
// Law: each kind of event is given at most once; kRejected, kUnreachable and kDisconnected are
// last, and only one comes.
// Law: the queue pair is ready before a message leaves that invites the peer to use it, and in
// Error with the last event.
// Law: a state other than kEstablished lasts a bounded time, even if the peer stays silent; at the
// end there is kClosed.
// Law: a request whose sender has not shown that it is there costs at most kMaxUnconfirmed
// messages, and one more for each of its own. The sender's address may be forged, and belong to
// somebody who never asked.
// Thread rule: none; its owner's lock.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/cm/connection_rules.h"
#include "lib/verbs/soft/cm/mad.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

// How long (2.1 s) an ended connection answers late messages, and its queue pair's number stays
// unused.
constexpr uint8_t kTimeWaitCode = 19;
// Messages to a request's sender that has not shown yet that it gets them.
constexpr int kMaxUnconfirmed = 3;
// How long a peer's request may wait for Accept or Reject.
constexpr base::Duration kMaxAnswerTime = base::Seconds(30);

// After a queue pair went to Error, the peer shall find out why (from a NAK, or from silence)
// before a DREQ ends it without a reason. So the DREQ waits for the application's drop, for at most
// 2.1 s.
constexpr uint8_t kFailedCode = 19;

enum class ConnectionPhase : uint8_t {
  kIdle,         // nothing has happened yet
  kReqSent,      // active: REQ sent, waiting for REP
  kRepReceived,  // active: the peer's REP is here, and the asker has not confirmed it yet
  kReqReceived,  // passive: the application has been asked
  kRepSent,      // passive: accepted, waiting for RTU or data
  kEstablished,
  kFailed,    // the queue pair went to Error by itself; a DREQ follows soon
  kDreqSent,  // ended by this side, waiting for DREP
  kTimeWait,  // over; late messages are still answered
  kClosed,    // may be forgotten
};
const char* ToString(ConnectionPhase phase);

// True if the end was reported to the application, or asked for by it.
constexpr bool IsEnding(ConnectionPhase phase) { return phase >= ConnectionPhase::kFailed; }

// An event for the application.
struct ConnectionNews {
  ConnectionEvent::Kind kind;
  absl::Status status;
  std::optional<AnyData> private_data{};  // if the event came with a message that has room for it
  uint32_t path_mtu = 0;
  RejectReason reason = RejectReason::kConsumer;  // kRejected: the peer's, if it sent a REJ
};

struct ConnectionActions {
  enum class Walk : uint8_t { kStay, kReadyToReceive, kReadyToSend, kError };

  bool stop_timers = false;  // timers set before are void
  Walk walk = Walk::kStay;   // of the queue pair, with attributes(); to kReadyToSend by way of kReadyToReceive
  std::optional<Mad> send;
  std::optional<base::Duration> repeat_after;  // (re)start the timer that calls OnRepeat
  std::optional<base::Duration> limit_after;   // (re)start the timer that calls OnLimit
  std::optional<ConnectionNews> news;
  bool ask_again = false;               // AskAgain, with a new local ID
  std::optional<uint64_t> transaction;  // for AskAgain; nothing: a new one
};

class ConnectionState final {
 public:
  struct Identity {
    Address local;
    Address peer;  // the service's, or the one that the peer wants to be seen as
    uint64_t ca_guid = 0;
    uint32_t local_id = 0;
    uint64_t transaction = 0;  // active: the REQ's
  };

  // The active side, before Connect.
  explicit ConnectionState(const Identity& identity) : identity_(identity) {}

  // The passive side, before Begin, made by a REQ that Refuse let pass.
  ConnectionState(const Identity& identity, const ReqMad& req) : identity_(identity), req_(req) { passive_ = true; }

  ConnectionActions Connect(const ConnectionOffer& offer);  // active, idle
  ConnectionActions Begin();                                // passive, idle
  ConnectionActions Accept(const ConnectionOffer& offer);   // kReqReceived, offer.max_path_mtu >= path_mtu()
  ConnectionActions Reject(const RejMad& rej);              // kReqReceived
  ConnectionActions AskAgain(uint32_t local_id, uint64_t transaction);
  ConnectionActions Confirm();  // kRepReceived: the queue pair is ready

  // The application lost interest. In kReqReceived that rejects.
  ConnectionActions Drop();

  // `mad` names this connection and comes from its peer. The phase is neither kIdle nor kClosed.
  ConnectionActions OnMad(const Mad& mad);
  // `heard`: the queue pair has taken something from the peer, which so believes in the connection.
  ConnectionActions OnRepeat(bool heard = false);
  ConnectionActions OnLimit();
  ConnectionActions OnFirstData();
  ConnectionActions OnQueuePairError(absl::Status status);  // in Error, or gone, but not by ConnectionActions::walk

  // Handles a REQ in the peer's name that the peer, as we know it, would not have sent: it has
  // forgotten this connection, or somebody forges its address. An established connection ends only
  // when the peer answers that it does not know it; `transaction`, which nobody can guess, is that
  // question's.
  ConnectionActions OnDoubt(uint64_t transaction);

  ConnectionPhase phase() const { return phase_; }
  bool passive() const { return passive_; }
  bool half_open() const { return phase_ == ConnectionPhase::kReqReceived || phase_ == ConnectionPhase::kRepSent; }
  const Identity& identity() const { return identity_; }
  uint32_t remote_id() const { return remote_id_; }                  // 0 until known
  uint32_t remote_queue_pair() const { return remote_queue_pair_; }  // 0 until known
  uint32_t path_mtu() const { return path_mtu_; }
  const ReqMad& req() const { return req_; }
  const RepMad& rep() const { return rep_; }  // the peer's, or ours; once there is one

  // How to walk the queue pair, except remote_access and the peer's address.
  QueuePairAttributes attributes() const;

 private:
  using Walk = ConnectionActions::Walk;

  void Enter(ConnectionPhase phase, ConnectionActions* actions);
  void Send(decltype(Mad::body) body, ConnectionActions* actions) const;
  void SendReq(ConnectionActions* actions);
  void SendDreq(ConnectionActions* actions);
  void SendRtu(ConnectionActions* actions);
  bool MaySpeak();
  void RepeatRtu(ConnectionActions* actions);
  void Establish(const std::optional<AnyData>& private_data, ConnectionActions* actions);
  void Disconnect(ConnectionActions* actions);
  void GiveUpAsking(ConnectionActions* actions);
  void WaitOut(ConnectionActions* actions);
  void EndForgotten(ConnectionActions* actions);
  void End(ConnectionEvent::Kind kind, absl::Status status, ConnectionActions* actions);

  void On(const ReqMad& req, uint64_t transaction, ConnectionActions* actions);
  void On(const MraMad& mra, uint64_t transaction, ConnectionActions* actions);
  void On(const RejMad& rej, uint64_t transaction, ConnectionActions* actions);
  void On(const RepMad& rep, uint64_t transaction, ConnectionActions* actions);
  void On(const RtuMad& rtu, uint64_t transaction, ConnectionActions* actions);
  void On(const DreqMad& dreq, uint64_t transaction, ConnectionActions* actions);
  void On(const DrepMad& drep, uint64_t transaction, ConnectionActions* actions);
  void On(const SidrReqMad&, uint64_t, ConnectionActions*) {}  // about no connection
  void On(const SidrRepMad&, uint64_t, ConnectionActions*) {}

  Identity identity_;
  bool passive_ = false;
  ConnectionPhase phase_ = ConnectionPhase::kIdle;
  ConnectionOffer offer_;
  ReqMad req_;                 // passive: the peer's; active: ours
  RepMad rep_;                 // passive, once accepted: ours; active: the peer's
  std::optional<RejMad> rej_;  // passive, once rejected
  uint32_t remote_id_ = 0;
  uint32_t remote_queue_pair_ = 0;
  uint32_t send_psn_ = 0;
  uint32_t path_mtu_ = 0;
  int repeats_ = 0;
  int cookies_ = 0;                   // active: cookies from a busy peer
  bool confirmed_ = false;            // true if the peer has shown that it gets our messages
  int unconfirmed_ = 0;               // passive: messages sent before that
  std::optional<uint64_t> question_;  // the transaction of OnDoubt, until the next OnRepeat
};

}  // namespace tokamak::verbs::soft
