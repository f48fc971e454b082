// PeerConnection joins two endpoints: a control channel, a bulk channel and the connection manager's
// part. It knows nothing of transfers: what comes
// goes to its User.
//
// The side that pulls connects the queue pair of messages, and the connection is up; those of bulk
// follow when something large is to be moved (primary_rail.h). The private data of each says which
// connection it belongs to and which of its queue pairs it is (hello.h). Other rails join then,
// too, where the owner has said where they are, and drop out by themselves (secondary_rail.h).
//
// Work is done in turns: after a batch of completions (shared_completions.h) or when somebody has
// something to send, what was received is posted again, credits are returned, and what waits is
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
    // A message came; its body lives during the call, and what is copied of it counts in `budget`.
    // An error means that no honest peer would have sent it.
    virtual absl::Status OnMessage(const Message& message, CopyBudget& budget) = 0;
    virtual absl::Status OnNote(const Note& note) = 0;
    // The owner has said where its rails are.
    virtual void OnRails(absl::Span<const verbs::Address> rails) = 0;
    // Writes that are asked for and wait for notes, by rising number.
    virtual std::vector<WantedWrite> WritesWanted() const = 0;
    // Transfers or calls are under way: silence is suspicious.
    virtual bool busy() const = 0;
    // Of a puller: transfers that are not eager.
    virtual bool bulk_wanted() const = 0;
    // Of a puller: the bulk queue pairs do not come up. Stops these transfers.
    virtual void OnBulkFailed(const absl::Status& status) = 0;
    // It is over. Runs once, in a task of its own, and may drop the connection.
    virtual void OnBroken(const absl::Status& status) = 0;
  };

  // `user` outlives the connection. kPuller connects, kOwner is connected to.
  static absl::StatusOr<std::unique_ptr<PeerConnection>> Create(Context& context, BulkChannel::Side side,
                                                                const BulkChannel::Shape& shape,
                                                                const verbs::Address& peer, uint64_t token,
                                                                PeerConnection::User& user);
  ~PeerConnection() override;

  // Asks the peer for the queue pair of messages.
  absl::Status Connect();
  // The peer asks for that, or for one of bulk.
  absl::Status Accept(verbs::ConnectionRequest& request, const Hello& theirs);

  // For the user, until it is broken. Nothing is sent in the call.
  void Send(const Header& header, std::vector<uint8_t> body = {});
  ControlChannel& control() { return *control_; }
  BulkChannel& bulk() { return *bulk_; }
  // Before a job is added to it, or the owner is asked for what will be one: PrimaryRail::Need.
  absl::Status NeedBulk() { return home_->Need(); }
  // A transfer that needed it is over.
  void BulkMoved() {
    if (!broken()) home_->Moved();
  }
  const Hello& peer_hello() const { return peer_hello_; }
  const verbs::Address& peer() const { return peer_; }

  // Something was added to a channel: work will be done.
  void Wake() override;
  // Whether all messages have left and reached the peer. Where not, sees to it that this can be
  // known: ask again.
  bool Drain();
  // There are transfers or calls under way (again).
  void Watch();
  // Ends it: OnBroken follows. Only the first counts.
  void Break(absl::Status status) override;

  // Requests of a job do not end by themselves: drops the rails that they are on, or ends the
  // connection. May end the job.
  void EndRequests(const BulkJob& job, const absl::Status& status);

  void OnDeviceEvent(uint32_t rail, const verbs::DeviceEventInfo& info);
  bool up() const { return state_ == State::kUp; }
  // A message came: it was not only made, which over TCP says nothing about the rail, but
  // has carried something.
  bool heard() const { return heard_; }
  bool broken() const override { return state_ == State::kBroken; }
  // The peer has left: what it sent before is still passed on, then OnBroken follows. Nothing new
  // should be started.
  bool leaving() const { return !leaving_.ok() || broken(); }

 private:
  enum class State { kConnecting, kUp, kBroken };

  PeerConnection(Context& context, const verbs::Address& peer, uint64_t token, PeerConnection::User& user)
      : context_(context), peer_(peer), token_(token), user_(user) {}
  absl::Status Open(BulkChannel::Side side, const BulkChannel::Shape& shape);
  uint32_t primary() const { return bulk_->shape().primary; }

  // RailLinks::User, of messages; and the first for all rails
  Hello MyHello(uint32_t queue) const override;
  void OnPeerHello(const Hello& theirs) override;
  void OnLinksUp(uint32_t path_mtu) override;
  void OnLinkLost(const verbs::ConnectionEvent& event) override;
  void OnBadHello(const absl::Status& status) override;
  // PrimaryRail::Host
  bool bulk_wanted() const override { return user_.bulk_wanted(); }
  void OnBulkUp() override;
  void OnBulkFailed(const absl::Status& status) override { user_.OnBulkFailed(status); }
  // RailHost, of both
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
  absl::Status leaving_;  // why; OK while the peer is there
  std::array<uint64_t, kMaxRails>
      left_by_{};  // leaving: of each rail, SharedCompletions::passed when all was passed on
  absl::Status reason_;

  // Dropped in this order, see TearDown: links, queue pairs.
  std::unique_ptr<RailLinks> links_;  // of messages
  std::unique_ptr<ControlChannel> control_;
  std::unique_ptr<BulkChannel> bulk_;
  std::optional<PrimaryRail> home_;
  std::optional<SecondaryRails> rails_;

  bool heard_ = false;

  // The puller's, until it is up: messages that came before the word that it is, which takes a way
  // of its own. The peer's first credits bound them.
  std::vector<verbs::Completion> early_;

  base::Timer work_;                // Work, or the end
  base::Timer deadline_;            // until it is up
  std::optional<PeerWatch> watch_;  // while it is up
};

}  // namespace tokamak::transport
