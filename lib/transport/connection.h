// Connection joins two endpoints: a control channel, a bulk channel, the completion queues that they complete into, and the
// connection manager's part. It knows nothing of transfers: what comes goes to its User.
//
// The side that pulls connects all queue pairs of the primary rail at once; the private data of each says which connection it
// belongs to and which of its queue pairs it is (hello.h). The connection is up when every one of them is, and ends with any.
// Other rails join when the owner has said where they are, and drop out by themselves (secondary_rail.h).
//
// Work is done in tasks: arm, drain, pass on, post again, return credits, send. A rail's completion queue has an entry for
// everything that can be posted on it, so it cannot overrun.
//
// Law: when OnBroken runs, the queue pairs are gone: no peer and no device touches memory through this connection any more.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/transport/bulk_channel.h"
#include "lib/transport/completions.h"
#include "lib/transport/context.h"
#include "lib/transport/control_channel.h"
#include "lib/transport/hello.h"
#include "lib/transport/message.h"
#include "lib/transport/rail_messages.h"
#include "lib/transport/secondary_rail.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class Connection final : private SecondaryRail::Host {
 public:
  class User {
   public:
    virtual ~User() = default;
    // Messages may leave. Runs once, in a task of its own.
    virtual void OnUp() = 0;
    // A message came; its body lives during the call. An error means that no honest peer would have sent it.
    virtual absl::Status OnMessage(const Message& message) = 0;
    virtual absl::Status OnNote(const Note& note) = 0;
    // The owner has said where its rails are.
    virtual void OnRails(absl::Span<const verbs::Address> rails) = 0;
    // Writes that are asked for and wait for notes, by rising number.
    virtual std::vector<WantedWrite> WritesWanted() const = 0;
    // Transfers or calls are under way: silence is suspicious.
    virtual bool busy() const = 0;
    // It is over. Runs once, in a task of its own, and may drop the connection.
    virtual void OnBroken(const absl::Status& status) = 0;
  };

  // `user` outlives the connection. kPuller connects, kOwner is connected to.
  static absl::StatusOr<std::unique_ptr<Connection>> Create(Context& context, BulkChannel::Side side,
                                                            const BulkChannel::Shape& shape, const verbs::Address& peer,
                                                            uint64_t token, User& user);
  ~Connection() override;

  // Asks the peer for all queue pairs of the primary rail.
  absl::Status Connect();
  // The peer asks for one of them, or for one of another rail.
  absl::Status Accept(verbs::ConnectionRequest& request, const Hello& theirs);

  // For the user. Nothing is sent in the call.
  void Send(const Header& header, std::vector<uint8_t> body = {});
  ControlChannel& control() { return *control_; }
  BulkChannel& bulk() override { return *bulk_; }
  CopyBudget& budget() { return budget_; }
  const BulkChannel::Shape& shape() const { return bulk_->shape(); }
  const Hello& peer_hello() const { return peer_hello_; }
  const verbs::Address& peer() const { return peer_; }

  // Something was added to a channel: work will be done.
  void Wake() override;
  // Whether all messages have left and reached the peer. Where not, sees to it that this can be known: ask again.
  bool Drain();
  // There are transfers or calls under way (again).
  void Watch();
  // Ends it: OnBroken follows. Only the first counts.
  void Break(absl::Status status);
  // The same for a peer that violates the protocol.
  void BreakForViolation(const absl::Status& status);

  // Requests of a job do not end by themselves: drops the rails that they are on, or ends the connection. May end the job.
  void EndRequests(const BulkJob& job, const absl::Status& status);

  void OnDeviceEvent(uint32_t rail, const verbs::DeviceEventInfo& info);
  // By the peer: a queue pair of the primary rail.
  bool Asked(uint8_t queue) const { return links_[LinkOf(queue)].connection != nullptr; }
  bool up() const { return state_ == State::kUp; }
  // A message came: it was not only made, which over TCP says nothing about the rail, but has carried something.
  bool heard() const { return heard_; }
  bool broken() const { return state_ == State::kBroken; }
  // The peer has left: what it sent before is still passed on, then OnBroken follows. Nothing new should be started.
  bool leaving() const { return !leaving_.ok() || broken(); }

 private:
  enum class State { kConnecting, kUp, kBroken };
  static constexpr size_t kCompletionsPerTask = 1024;

  struct Link {
    std::unique_ptr<verbs::Connection> connection;
    bool established = false;
  };

  Connection(Context& context, BulkChannel::Side side, const verbs::Address& peer, uint64_t token, User& user);
  absl::Status Open(const BulkChannel::Shape& shape);
  const Rail& primary_rail() const { return context_.rails[shape().primary]; }
  // Links are of the primary rail: the first is of the messages.
  uint32_t QueueOf(size_t link) const {
    return link == 0 ? 0 : shape().primary * shape().each + static_cast<uint32_t>(link);
  }
  size_t LinkOf(uint32_t queue) const { return queue == 0 ? 0 : queue - shape().primary * shape().each; }
  bool IsPrimary(uint32_t queue) const { return queue == 0 || bulk_->RailOfQueue(queue - 1) == shape().primary; }
  verbs::QueuePair& queue_pair(uint32_t queue) {
    return queue == 0 ? control_->queue_pair() : bulk_->queue_pair(queue - 1);
  }

  // SecondaryRail::Host
  Hello MyHello(uint32_t queue) const override;
  void OnRailEvent() override { Work(); }
  void SayDown(uint32_t rail) override;

  void OnConnectionEvent(size_t link, const verbs::ConnectionEvent& event);
  void OnEstablished(size_t link, absl::Span<const uint8_t> private_data);
  void OnRejected(const verbs::ConnectionEvent& event);
  void OnPeerHello(const Hello& theirs);
  void ComeUp();

  void OnEvent();
  void Work();
  bool DrainCompletions();
  Completions* CompletionsOf(size_t rail);
  bool DrainCompletionsOf(Completions& completions, size_t* handled);
  void Handle(const verbs::Completion& completion);
  void HandleReceive(const RequestId& id, const verbs::Completion& completion);
  void HandleNote(const RequestId& id, const verbs::Completion& completion);
  absl::Status HandleMessage(const Message& message);
  absl::Status HandleRails(const Message& message);
  absl::Status HandleRailDown(const Message& message);
  absl::Status CheckKeys(const RailKeys& further) const;
  bool IsSecondary(uint32_t rail) const { return rail < rails_.size() && rails_[rail] != nullptr; }
  void MakeSecondaryRails();
  void HandleError(const RequestId& id, const verbs::Completion& completion);
  bool Repost();
  bool Pump();
  bool Has(uint32_t queue_pair_number);
  void OnTrouble(const BulkChannel::Trouble& trouble);
  void OnWatch();
  bool DeviceIsStuck();
  void TearDown();

  Context& context_;
  const BulkChannel::Side side_;
  const verbs::Address peer_;
  const uint64_t token_;
  User& user_;
  State state_ = State::kConnecting;
  Hello peer_hello_;
  absl::Status leaving_;  // why; OK while the peer is there
  absl::Status reason_;

  // Dropped in this order, see TearDown: connections, queue pairs, completion queues.
  std::vector<Link> links_;
  std::unique_ptr<ControlChannel> control_;
  std::unique_ptr<BulkChannel> bulk_;
  std::vector<std::unique_ptr<SecondaryRail>> rails_;  // null: the primary one
  std::unique_ptr<Completions> completions_;           // of the primary rail

  bool heard_ = false;
  size_t drain_next_ = 0;  // which rail's completions come first
  CopyBudget budget_;
  bool working_ = false;

  base::Timer work_;      // Work, or the end
  base::Timer deadline_;  // until it is up
  base::Timer watch_;
  bool watching_ = false;  // probing, rather than waiting to be idle long enough
  uint64_t received_at_watch_ = 0;
  uint64_t completions_at_watch_ = 0;
  int watches_without_completion_ = 0;
  bool draining_ = false;  // the last watch asked what became of the last messages
  base::Time idle_since_;
};

}  // namespace tokamak::transport
