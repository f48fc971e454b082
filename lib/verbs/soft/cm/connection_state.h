// ConnectionState is one connection as the protocol sees it: it takes messages, calls and expiries,
// and returns what to do next.
//
// Its owner carries out ConnectionActions in the order of their fields. docs/connection.md draws
// the states. Each message that a peer may have to repeat is answered, so under loss, duplication
// and reordering both sides agree in the end or give up.
//
// Law: each kind of event is given at most once; at most one of kRejected, kUnreachable and
// kDisconnected is given, as the last.
// Law: the queue pair is ready before a message invites the peer to use it, and in Error with the
// last event.
// Law: a state other than kEstablished lasts a bounded time, even if the peer is silent, and ends
// in kClosed.
// Law: a request whose sender has not shown that it is there, since its address may be forged,
// costs at most kMaxUnconfirmed messages, and one more for each of its own.
// Thread rule: its owner's lock.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/cm/connection_rules.h"
#include "lib/verbs/soft/cm/mad.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

// TIMEWAIT (2.1 s), in which late messages are answered and the queue pair's number stays unused.
constexpr uint8_t kTimeWaitCode = 19;
// Messages to a request's sender that has not shown yet that it gets them.
constexpr int kMaxUnconfirmed = 3;
// The longest wait of a peer's request for Accept or Reject.
constexpr base::Duration kMaxAnswerTime = base::Seconds(30);

// Once the queue pair is in Error, the DREQ waits for the application's drop, at most 2.1 s: the
// peer learns the reason first, from a NAK or from silence.
constexpr uint8_t kFailedCode = 19;

enum class ConnectionPhase : uint8_t {
  kIdle,
  kReqSent,      // active: waiting for REP
  kRepReceived,  // active: the asker has not confirmed the REP yet
  kReqReceived,  // passive: the application decides
  kRepSent,      // passive: waiting for RTU or data
  kEstablished,
  kFailed,    // the queue pair went to Error by itself; a DREQ follows
  kDreqSent,  // waiting for DREP
  kTimeWait,  // late messages are answered
  kClosed,    // may be forgotten
};
const char* ToString(ConnectionPhase phase);

// True if the application knows of the end, or asked for it.
constexpr bool IsEnding(ConnectionPhase phase) { return phase >= ConnectionPhase::kFailed; }

struct ConnectionNews {
  ConnectionEvent::Kind kind;
  absl::Status status;
  std::optional<AnyData> private_data{};  // if the message has room for it
  uint32_t path_mtu = 0;
  RejectReason reason = RejectReason::kConsumer;  // kRejected: the peer's, if it sent a REJ
  uint32_t peer_queue_pair = 0;                   // kEstablished
};

struct ConnectionActions {
  enum class Walk : uint8_t { kStay, kReadyToReceive, kReadyToSend, kError };

  bool stop_timers = false;  // earlier timers are void
  Walk walk = Walk::kStay;   // of the queue pair, with attributes(); to kReadyToSend by way of kReadyToReceive
  std::optional<Mad> send;
  std::optional<base::Duration> repeat_after;  // (re)starts the timer of OnRepeat
  std::optional<base::Duration> limit_after;   // (re)starts the timer of OnLimit
  std::optional<ConnectionNews> news;
  bool ask_again = false;               // AskAgain, with a new local ID
  std::optional<uint64_t> transaction;  // for AskAgain; none: a new one
};

class ConnectionState final {
 public:
  struct Identity {
    Address local;
    Address peer;  // the service's, or as the peer wants to be seen
    uint64_t ca_guid = 0;
    uint32_t local_id = 0;
    uint64_t transaction = 0;  // active: the REQ's
  };

  // The active side.
  explicit ConnectionState(const Identity& identity) : identity_(identity) {}

  // The passive side, for a REQ that Refuse let pass.
  ConnectionState(const Identity& identity, const ReqMad& req) : identity_(identity), req_(req) { passive_ = true; }

  ConnectionActions Connect(const ConnectionOffer& offer);  // active, idle
  ConnectionActions Begin();                                // passive, idle
  ConnectionActions Accept(const ConnectionOffer& offer);   // kReqReceived, offer.max_path_mtu >= path_mtu()
  ConnectionActions Reject(const RejMad& rej);              // kReqReceived
  ConnectionActions AskAgain(uint32_t local_id, uint64_t transaction);
  ConnectionActions Confirm();  // kRepReceived: the queue pair is ready

  // The application lost interest; rejects in kReqReceived.
  ConnectionActions Drop();

  // `mad` names this connection and comes from its peer. The phase is neither kIdle nor kClosed.
  ConnectionActions OnMad(const Mad& mad);
  // `heard`: the queue pair has taken something from the peer.
  ConnectionActions OnRepeat(bool heard = false);
  ConnectionActions OnLimit();
  ConnectionActions OnFirstData();
  ConnectionActions OnQueuePairError(absl::Status status);  // in Error or gone, not by ConnectionActions::walk

  // Takes a REQ in the peer's name that contradicts this connection: the peer has forgotten the
  // connection, or its address is forged. An established connection ends only when the peer answers
  // a question that it does not know it; `transaction`, which nobody can guess, is that question's.
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

  // Returns how to walk the queue pair, except for remote_access and the peer's address.
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
  void TellEstablished(const std::optional<AnyData>& private_data, ConnectionActions* actions) const;
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
  void On(const SidrReqMad&, uint64_t, ConnectionActions*) {}
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
