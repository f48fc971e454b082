// ConnectionState is one connection as the protocol sees it: fed with messages, calls and expiries,
// it says what to do next.
//
// It has no clock, timer, queue pair or lock: ConnectionActions name what its owner carries out, in
// the order of its fields. docs/connection.md draws the states. The machine answers every message
// that a lost or late answer could have made the peer repeat, so that whatever a network loses,
// repeats or reorders, both sides end up agreed or give up.
//
// Law: an event is given at most once of each kind; kRejected, kUnreachable and kDisconnected are
// last, and only one comes.
// Law: the queue pair is ready before a message leaves that invites the peer to use it, and in
// Error with the last event.
// Law: a state other than kEstablished lasts a bounded time, even if the peer stays silent; at the
// end there is kClosed.
// Law: for a request whose sender has not shown that it is there at most kMaxUnconfirmed messages are
// sent, and one more for each message of it that comes. The sender's address may be forged, and belong
// to somebody who never asked.
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

// How long an ended connection answers late messages, and its queue pair's number stays unused: 2.1
// s.
constexpr uint8_t kTimeWaitCode = 19;
// Messages for a request whose sender has not shown yet that it gets them.
constexpr int kMaxUnconfirmed = 3;
// How long a peer's request may wait for Accept or Reject.
constexpr base::Duration kMaxAnswerTime = base::Seconds(30);

// After a queue pair went to Error, the peer shall find out why (from a NAK, or from silence)
// before a DREQ tells it only that. So the DREQ waits for the application to drop its connection,
// for at most 2.1 s.
constexpr uint8_t kFailedCode = 19;

enum class ConnectionPhase : uint8_t {
  kIdle,         // nothing has happened yet
  kReqSent,      // active: REQ sent, waiting for REP
  kRepReceived,  // active: the peer's REP is here, and who asked has not confirmed it yet
  kReqReceived,  // passive: the application has been asked
  kRepSent,      // passive: accepted, waiting for RTU or data
  kEstablished,
  kFailed,    // the queue pair went to Error by itself; the peer is told soon
  kDreqSent,  // ended by this side, waiting for DREP
  kTimeWait,  // over; late messages are still answered
  kClosed,    // may be forgotten
};
const char* ToString(ConnectionPhase phase);

// True when the application has been told of the end, or has asked for it.
constexpr bool IsEnding(ConnectionPhase phase) { return phase >= ConnectionPhase::kFailed; }

// A ConnectionEvent to be given.
struct ConnectionNews {
  ConnectionEvent::Kind kind;
  absl::Status status;
  std::optional<AnyData> private_data{};  // where the event came with a message that has room for it
  uint32_t path_mtu = 0;
  RejectReason reason = RejectReason::kConsumer;  // kRejected: the peer's, where it sent a REJ
};

struct ConnectionActions {
  enum class Walk : uint8_t { kStay, kReadyToReceive, kReadyToSend, kError };

  bool stop_timers = false;  // what was set before is void
  Walk walk = Walk::kStay;   // the queue pair, with attributes(); to kReadyToSend by way of kReadyToReceive
  std::optional<Mad> send;
  std::optional<base::Duration> repeat_after;  // (re)start the timer that calls OnRepeat
  std::optional<base::Duration> limit_after;   // (re)start the timer that calls OnLimit
  std::optional<ConnectionNews> news;          // for the application
  bool ask_again = false;                      // AskAgain, with a new local ID
  std::optional<uint64_t> transaction;         // for AskAgain; a new one where there is none
};

class ConnectionState final {
 public:
  struct Identity {
    Address local;
    Address peer;  // the service's, or the one that the peer wants to be seen as
    uint64_t ca_guid = 0;
    uint32_t local_id = 0;
    uint64_t transaction = 0;  // active: of the REQ
  };

  // The active side, before Connect.
  explicit ConnectionState(const Identity& identity) : identity_(identity) {}

  // The passive side, made by a REQ that Refuse had nothing against; before Begin.
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
  ConnectionActions OnQueuePairError(absl::Status status);  // in Error, or gone, not by ConnectionActions::walk

  // A REQ came in the peer's name that the peer, as we know it, would not have sent: it has
  // forgotten this connection, or somebody forges its address. What is established does not end
  // before the peer has said that it knows nothing of it; `transaction`, which nobody can guess, is
  // that question's.
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

  // How to walk the queue pair, but for remote_access and the peer's address, which the caller
  // knows.
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
  int cookies_ = 0;                   // active: how many a busy peer has given us
  bool confirmed_ = false;            // the peer has shown that it gets our messages
  int unconfirmed_ = 0;               // passive: messages sent before that
  std::optional<uint64_t> question_;  // of OnDoubt, while it is young
};

}  // namespace tokamak::verbs::soft
