// PeerConnection joins two endpoints: a control channel, a bulk channel and the connection
// manager's part. It knows nothing of transfers: messages go to its User.
//
// It is up with the control queue pair, where peers are authenticated after the handshake; the
// other queue pairs follow with the first large transfer
// (primary_rail.h, secondary_rail.h, hello.h). A turn runs after a batch of completions
// (shared_completions.h) or when there is something to send: receives are posted again, credits
// returned, waiting messages sent.
//
// Law: when OnBroken runs, the queue pairs are gone: no peer and no device touches memory through
// this connection any more.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/transport/channels/bulk_channel.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/channels/control_channel.h"
#include "lib/transport/channels/shared_completions.h"
#include "lib/transport/messages/hello.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/messages/rail_messages.h"
#include "lib/transport/messages/request_id.h"
#include "lib/transport/peer_handshake.h"
#include "lib/transport/rails/peer_watch.h"
#include "lib/transport/rails/primary_rail.h"
#include "lib/transport/rails/rail_links.h"
#include "lib/transport/rails/secondary_rails.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class PeerConnection final : private RailLinks::User,
                             private PrimaryRail::Host,
                             private PeerHandshake::User,
                             private PeerWatch::User,
                             private SharedCompletions::User {
 public:
  class User {
   public:
    virtual ~User() = default;
    // Messages may leave. Runs once, in a task of its own.
    virtual void OnUp() = 0;
    // The body lives during the call; copies of it count in `budget`. Errors: a protocol violation.
    virtual absl::Status OnMessage(const Message& message, CopyBudget& budget) = 0;
    virtual absl::Status OnNote(const Note& note) = 0;
    virtual void OnRails(absl::Span<const verbs::Address> rails) = 0;
    // Returns the writes that wait for notes, by rising number.
    virtual std::vector<WantedWrite> WritesWanted() const = 0;
    // True while transfers or calls are under way: silence is suspicious.
    virtual bool busy() const = 0;
    // True if a puller has transfers other than eager.
    virtual bool bulk_wanted() const = 0;
    // Stops a puller's bulk transfers.
    virtual void OnBulkFailed(const absl::Status& status) = 0;
    // Runs once, in a task of its own, and may drop the connection.
    virtual void OnBroken(const absl::Status& status) = 0;
  };

  // `user` outlives the connection. kPuller connects, kOwner accepts.
  static absl::StatusOr<std::unique_ptr<PeerConnection>> Create(Context& context, BulkChannel::Side side,
                                                                const BulkChannel::Shape& shape,
                                                                const verbs::Address& peer, uint64_t token,
                                                                PeerConnection::User& user);
  ~PeerConnection() override;

  absl::Status Connect();
  // Accepts any queue pair.
  absl::Status Accept(verbs::ConnectionRequest& request, const Hello& theirs);

  // Queues a message for a later task; not on a broken connection.
  void Send(const Header& header, std::vector<uint8_t> body = {});
  ControlChannel& control() { return *control_; }
  BulkChannel& bulk() { return *bulk_; }
  // Call it before a job is added or the owner is asked for one (PrimaryRail::Need).
  absl::Status NeedBulk() { return home_->Need(); }
  void BulkMoved() {
    if (!broken()) home_->Moved();
  }
  const Hello& peer_hello() const { return peer_hello_; }
  const verbs::Address& peer() const { return peer_; }

  // Schedules a turn.
  void Wake() override;
  // Returns whether the peer has all messages. If not, requests a completion that will show it: ask
  // again.
  bool Drain();
  // Transfers or calls are under way (again).
  void Watch();
  // Ends the connection: OnBroken follows. Only the first call counts.
  void Break(absl::Status status) override;

  // Requests of a job do not end: drops their rails, or ends the connection. May end the job.
  void EndRequests(const BulkJob& job, const absl::Status& status);

  void OnDeviceEvent(uint32_t rail, const verbs::DeviceEventInfo& info);
  bool up() const { return state_ == State::kUp; }
  // True once a message came: being connected proves nothing of a rail over TCP.
  bool heard() const { return heard_; }
  bool broken() const override { return state_ == State::kBroken; }
  // True once the peer has left: earlier messages are still passed on, then OnBroken follows. Start
  // nothing new.
  bool leaving() const { return !leaving_.ok() || broken(); }

 private:
  enum class State { kConnecting, kProving, kUp, kBroken };

  PeerConnection(Context& context, const verbs::Address& peer, uint64_t token, PeerConnection::User& user)
      : context_(context), peer_(peer), token_(token), user_(user) {}
  absl::Status Open(BulkChannel::Side side, const BulkChannel::Shape& shape);
  uint32_t primary() const { return bulk_->shape().primary; }

  // RailLinks::User
  Hello MyHello(uint32_t queue, const Hello* asked) override;
  absl::Status CheckAnswer(const Hello& mine, const Hello& theirs) override {
    return PeerHandshake::CheckAnswer(mine, theirs);
  }
  void OnPeerHello(const Hello& theirs) override;
  void OnLinksUp(const RailLinks::Path& path) override;
  void OnLinkLost(const verbs::ConnectionEvent& event) override;
  void OnBadHello(const absl::Status& status) override;
  // PrimaryRail::Host
  bool bulk_wanted() const override { return user_.bulk_wanted(); }
  bool may_join() const override { return confirmed_; }
  void OnBulkUp() override;
  void OnBulkFailed(const absl::Status& status) override { user_.OnBulkFailed(status); }
  // RailHost
  SharedCompletions::User& completions_user() override { return *this; }
  void SayDown(uint32_t rail) override;
  absl::Status CheckProof(const Hello& theirs) override;
  // PeerHandshake::User
  void OnProven(security::SecuredConnection secured) override;
  void OnRefused(const absl::Status& why) override;
  // PeerWatch::User
  bool busy() const override { return user_.busy(); }
  // SharedCompletions::User
  void OnCompletion(const verbs::Completion& completion, CopyBudget& budget) override;
  void OnTurn(CopyBudget& budget) override;

  absl::Status BeginHandshake(uint32_t peer_queue_pair);
  void ComeUp();
  void PassEarly();
  void Work();
  absl::Status HandleReceive(const RequestId& id, const verbs::Completion& completion, CopyBudget& budget);
  absl::Status HandleRailDown(const Message& message);
  absl::Status HandleNote(const RequestId& id, const verbs::Completion& completion);
  absl::Status HandleMessage(const Message& message, CopyBudget& budget);
  void HandleError(const RequestId& id, const verbs::Completion& completion);
  void OnTrouble(const BulkChannel::Trouble& trouble);
  void BreakForViolation(const absl::Status& status);
  void TearDown();

  Context& context_;
  const verbs::Address peer_;
  const uint64_t token_;
  PeerConnection::User& user_;
  State state_ = State::kConnecting;
  Hello my_hello_, peer_hello_;                // of the control queue pair
  absl::Status leaving_;                       // reason; OK while the peer is there
  std::array<uint64_t, kMaxRails> left_by_{};  // while leaving: by rail, SharedCompletions::passed at the end
  absl::Status reason_;

  // Dropped in TearDown's order: links, queue pairs.
  std::unique_ptr<RailLinks> links_;  // of the control queue pair
  std::unique_ptr<ControlChannel> control_;
  std::unique_ptr<BulkChannel> bulk_;
  std::optional<PrimaryRail> home_;
  std::optional<SecondaryRails> rails_;

  std::shared_ptr<const security::ClusterSecrets> secrets_;  // as they were when the connection began
  std::optional<PeerHandshake> handshake_;                   // while proving
  std::optional<security::ConnectionKeys> keys_;             // where peers are authenticated
  std::vector<uint32_t> attempts_;                           // puller: of connecting each bulk queue pair
  bool confirmed_ = false;                                   // puller: the owner has spoken since the handshake

  bool heard_ = false;

  // Messages before the event that the connection is up, which takes another way: to the puller,
  // and of a handshake. Our first credits bound them.
  std::vector<verbs::Completion> early_;

  base::Timer work_;                // a turn, or the end
  base::Timer deadline_;            // until up
  std::optional<PeerWatch> watch_;  // while up
};

}  // namespace tokamak::transport
