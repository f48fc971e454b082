// Connection joins two endpoints: a control channel, a bulk channel, the completion queue that both complete into, and the
// connection manager's part. It knows nothing of transfers: what comes goes to its User.
//
// The side that pulls connects all queue pairs at once; the private data of each says which connection it belongs to and
// which of its queue pairs it is (hello.h). The connection is up when every queue pair is.
//
// Work is done in tasks: arm, drain, pass on, post again, return credits, send. A completion queue of its own has an entry
// for everything that can be posted, so it cannot overrun.
//
// Law: when OnBroken runs, the queue pairs are gone: no peer and no device touches memory through this connection any more.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/transport/bulk_channel.h"
#include "lib/transport/context.h"
#include "lib/transport/control_channel.h"
#include "lib/transport/hello.h"
#include "lib/transport/message.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class Connection final {
 public:
  class User {
   public:
    virtual ~User() = default;
    // Messages may leave. Runs once, in a task of its own.
    virtual void OnUp() = 0;
    // A message came. Setting `*hold` keeps `slot`, and the body in it, until Control().Release(slot). An error means that no
    // honest peer would have sent it.
    virtual absl::Status OnMessage(const Message& message, uint32_t slot, bool* hold) = 0;
    virtual absl::Status OnNote(const Note& note) = 0;
    // Transfers or calls are under way: silence is suspicious.
    virtual bool busy() const = 0;
    // It is over. Runs once, in a task of its own, and may drop the connection.
    virtual void OnBroken(const absl::Status& status) = 0;
  };

  // `user` outlives the connection. kPuller connects, kOwner is connected to.
  static absl::StatusOr<std::unique_ptr<Connection>> Create(Context& context, BulkChannel::Side side,
                                                            uint32_t bulk_queue_pairs, const verbs::Address& peer,
                                                            uint64_t token, User& user);
  ~Connection();

  // Asks the peer for all queue pairs.
  absl::Status Connect();
  // The peer asks for one of them.
  absl::Status Accept(verbs::ConnectionRequest& request, const Hello& theirs);

  // For the user. Nothing is sent in the call.
  void Send(const Header& header, std::vector<uint8_t> body = {});
  ControlChannel& control() { return *control_; }
  BulkChannel& bulk() { return *bulk_; }
  CopyBudget& budget() { return budget_; }
  uint32_t bulk_queue_pairs() const { return static_cast<uint32_t>(links_.size()) - 1; }
  const Hello& peer_hello() const { return peer_hello_; }
  const verbs::Address& peer() const { return peer_; }

  // Something was added to a channel: work will be done.
  void Wake();
  // Whether all messages have left and reached the peer. Where not, sees to it that this can be known: ask again.
  bool Settle();
  // There are transfers or calls under way (again).
  void Watch();
  // Ends it: OnBroken follows. Only the first counts.
  void Break(absl::Status status);
  // The same for a peer that makes no sense.
  void BreakForNonsense(const absl::Status& status);

  bool Has(uint32_t queue_pair_number);
  // By the peer.
  bool Asked(uint8_t queue) const { return links_[queue].connection != nullptr; }
  bool up() const { return state_ == State::kUp; }
  bool broken() const { return state_ == State::kBroken; }
  // The peer has left: what it sent before is still passed on, then OnBroken follows. Nothing new should be started.
  bool leaving() const { return !leaving_.ok() || broken(); }

 private:
  enum class State { kConnecting, kUp, kBroken };
  static constexpr size_t kPollBatch = 32;
  static constexpr size_t kCompletionsPerTask = 1024;

  struct Link {
    std::unique_ptr<verbs::Connection> connection;
    bool established = false;
  };

  Connection(Context& context, BulkChannel::Side side, const verbs::Address& peer, uint64_t token, User& user);
  absl::Status Open(uint32_t bulk_queue_pairs);
  Hello MyHello(uint8_t queue) const;
  verbs::QueuePair& queue_pair(uint32_t queue) {
    return queue == 0 ? control_->queue_pair() : bulk_->queue_pair(queue - 1);
  }

  void OnConnectionEvent(uint32_t queue, const verbs::ConnectionEvent& event);
  void OnEstablished(uint32_t queue, absl::Span<const uint8_t> private_data);
  void OnRejected(const verbs::ConnectionEvent& event);
  void Meet(const Hello& theirs);
  void ComeUp();

  void OnEvent();
  void Work();
  bool Drain();
  void Handle(const verbs::Completion& completion);
  void HandleReceive(const RequestId& id, const verbs::Completion& completion);
  void HandleError(const RequestId& id, const verbs::Completion& completion);
  bool Repost();
  bool Pump();
  void OnWatch();
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

  // Dropped from the last to the first: connections, queue pairs, completion queue.
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::unique_ptr<ControlChannel> control_;
  std::unique_ptr<BulkChannel> bulk_;
  std::vector<Link> links_;

  std::array<verbs::Completion, kPollBatch> polled_;
  size_t polled_next_ = 0;
  size_t polled_count_ = 0;
  CopyBudget budget_;
  bool working_ = false;

  base::Timer work_;      // Work, or the end
  base::Timer deadline_;  // until it is up
  base::Timer watch_;
  bool watching_ = false;  // probing, rather than waiting to be idle long enough
  uint64_t received_at_watch_ = 0;
  base::Time idle_since_;
};

}  // namespace tokamak::transport
