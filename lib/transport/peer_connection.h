// PeerConnection joins two endpoints: a control channel, a bulk channel and the connection
// manager's part. It knows nothing of transfers: messages go to its User.
//
// The puller connects the control queue pair, and the connection is up; bulk queue pairs follow
// when something large is to be moved (primary_rail.h). The private data of each says which
// connection it belongs to and which of its queue pairs it is (hello.h). Other rails join then,
// too, once the owner has announced them, and drop out by themselves (secondary_rail.h).
//
// Work is done in turns, after a batch of completions (shared_completions.h) or when there is
// something to send: receives are posted again, credits are returned, and waiting messages are
// sent.
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
#include "lib/transport/rails/peer_watch.h"
#include "lib/transport/rails/primary_rail.h"
#include "lib/transport/rails/rail_links.h"
#include "lib/transport/rails/secondary_rails.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class PeerConnection final : private RailLinks::User,
                             private PrimaryRail::Host,
                             private PeerWatch::User,
                             private SharedCompletions::User {
 public:
  class User {
   public:
    virtual ~User() = default;
    // Messages may leave. Runs once, in a task of its own.
    virtual void OnUp() = 0;
    // A message came. Its body lives during the call; copies of it count in `budget`. Errors: a
    // protocol violation.
    virtual absl::Status OnMessage(const Message& message, CopyBudget& budget) = 0;
    virtual absl::Status OnNote(const Note& note) = 0;
    // The owner has announced the addresses of its rails.
    virtual void OnRails(absl::Span<const verbs::Address> rails) = 0;
    // Returns the writes that were asked for and wait for notes, by rising number.
    virtual std::vector<WantedWrite> WritesWanted() const = 0;
    // True while transfers or calls are under way: silence is suspicious.
    virtual bool busy() const = 0;
    // True if a puller has transfers that are not eager.
    virtual bool bulk_wanted() const = 0;
    // Stops a puller's bulk transfers: the bulk queue pairs do not come up.
    virtual void OnBulkFailed(const absl::Status& status) = 0;
    // The connection is over. Runs once, in a task of its own, and may drop the connection.
    virtual void OnBroken(const absl::Status& status) = 0;
  };

  // `user` outlives the connection. kPuller connects, kOwner accepts.
  static absl::StatusOr<std::unique_ptr<PeerConnection>> Create(Context& context, BulkChannel::Side side,
                                                                const BulkChannel::Shape& shape,
                                                                const verbs::Address& peer, uint64_t token,
                                                                PeerConnection::User& user);
  ~PeerConnection() override;

  // Asks the peer for the control queue pair.
  absl::Status Connect();
  // Accepts the peer's request for the control queue pair, or for a bulk one.
  absl::Status Accept(verbs::ConnectionRequest& request, const Hello& theirs);

  // Queues a message; valid until the connection is broken. Sends nothing inside the call.
  void Send(const Header& header, std::vector<uint8_t> body = {});
  ControlChannel& control() { return *control_; }
  BulkChannel& bulk() { return *bulk_; }
  // Call it before a job is added, or before the owner is asked for a job: PrimaryRail::Need.
  absl::Status NeedBulk() { return home_->Need(); }
  // A transfer that needed bulk queue pairs is over.
  void BulkMoved() {
    if (!broken()) home_->Moved();
  }
  const Hello& peer_hello() const { return peer_hello_; }
  const verbs::Address& peer() const { return peer_; }

  // Schedules work: something was added to a channel.
  void Wake() override;
  // Returns whether all messages have left and reached the peer. If not, requests a completion that
  // will show it: ask again.
  bool Drain();
  // Transfers or calls are under way (again).
  void Watch();
  // Ends the connection: OnBroken follows. Only the first call counts.
  void Break(absl::Status status) override;

  // Requests of a job do not end by themselves: drops their rails, or ends the connection. May end
  // the job.
  void EndRequests(const BulkJob& job, const absl::Status& status);

  void OnDeviceEvent(uint32_t rail, const verbs::DeviceEventInfo& info);
  bool up() const { return state_ == State::kUp; }
  // True once a message came: being connected says nothing about the rail over TCP.
  bool heard() const { return heard_; }
  bool broken() const override { return state_ == State::kBroken; }
  // True once the peer has left: what it sent before is still passed on, then OnBroken follows.
  // Start nothing new.
  bool leaving() const { return !leaving_.ok() || broken(); }

 private:
  enum class State { kConnecting, kUp, kBroken };

  PeerConnection(Context& context, const verbs::Address& peer, uint64_t token, PeerConnection::User& user)
      : context_(context), peer_(peer), token_(token), user_(user) {}
  absl::Status Open(BulkChannel::Side side, const BulkChannel::Shape& shape);
  uint32_t primary() const { return bulk_->shape().primary; }

  // RailLinks::User, for the control queue pair; the first one for all rails
  Hello MyHello(uint32_t queue) const override;
  void OnPeerHello(const Hello& theirs) override;
  void OnLinksUp(uint32_t path_mtu) override;
  void OnLinkLost(const verbs::ConnectionEvent& event) override;
  void OnBadHello(const absl::Status& status) override;
  // PrimaryRail::Host
  bool bulk_wanted() const override { return user_.bulk_wanted(); }
  void OnBulkUp() override;
  void OnBulkFailed(const absl::Status& status) override { user_.OnBulkFailed(status); }
  // RailHost, for both kinds of rail
  SharedCompletions::User& completions_user() override { return *this; }
  void SayDown(uint32_t rail) override;
  // PeerWatch::User
  bool busy() const override { return user_.busy(); }
  // SharedCompletions::User
  void OnCompletion(const verbs::Completion& completion, CopyBudget& budget) override;
  void OnTurn(CopyBudget& budget) override;

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
  Hello peer_hello_;
  absl::Status leaving_;  // reason why the peer has left; OK while it is there
  std::array<uint64_t, kMaxRails>
      left_by_{};  // while leaving: by rail, the SharedCompletions::passed at which all was passed on
  absl::Status reason_;

  // Dropped in this order, see TearDown: links, queue pairs.
  std::unique_ptr<RailLinks> links_;  // of the control queue pair
  std::unique_ptr<ControlChannel> control_;
  std::unique_ptr<BulkChannel> bulk_;
  std::optional<PrimaryRail> home_;
  std::optional<SecondaryRails> rails_;

  bool heard_ = false;

  // On the puller, messages that came before the event that the connection is up, which takes
  // another way. The peer's first credits bound them.
  std::vector<verbs::Completion> early_;

  base::Timer work_;                // Work, or the end
  base::Timer deadline_;            // until it is up
  std::optional<PeerWatch> watch_;  // while it is up
};

}  // namespace tokamak::transport
