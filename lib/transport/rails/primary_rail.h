// PrimaryRail is a connection's bulk queue pairs on the rail of its messages. They are made for the
// first large transfer, and given back after a while without one: a peer that is idle, or whose
// objects are small, costs one queue pair.
//
//   the puller: absent --> joining --> up --> leaving --> absent
//   the owner:  absent --> joining --> up ------------> absent
//
// The puller decides: it connects them while it already asks the owner, and gives them back with
// RAIL_DOWN; the owner drops its own and answers with the same. The owner makes its ends at the
// connection or a WRITE, whichever comes first. If they do not come up, the puller ends the
// transfers that need them, gives them back, and tries again only after a while.
//
// Law: RAIL_DOWN leaves when the queue pairs are gone: nothing moves over them any more.
// Law: while a transfer uses them, they end only with the connection.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/transport/channels/bulk_channel.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/messages/hello.h"
#include "lib/transport/messages/rail_messages.h"
#include "lib/transport/rails/rail_host.h"
#include "lib/transport/rails/rail_links.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class PrimaryRail final : private RailLinks::User {
 public:
  // The connection.
  class Host : public RailHost {
   public:
    // Puller: true with transfers that may need the queue pairs.
    virtual bool bulk_wanted() const = 0;
    // Puller: true once the owner is known to take us for proven; it takes no bulk queue pair
    // before.
    virtual bool may_join() const = 0;
    // Other rails may join.
    virtual void OnBulkUp() = 0;
    // Puller: ends the transfers that need the queue pairs; those of the bulk channel in this call.
    virtual void OnBulkFailed(const absl::Status& status) = 0;
    // A link's end ends the connection.
    virtual void OnLinkLost(const verbs::ConnectionEvent& event) = 0;
    virtual void OnBadHello(const absl::Status& status) = 0;
    virtual void Break(absl::Status status) = 0;
    // True if the connection has ended, to be torn down in a task of its own, with all its
    // transfers.
    virtual bool broken() const = 0;
  };

  // `bulk`, the connection's, may go before us when our links have gone.
  PrimaryRail(Context& context, Host& host, BulkChannel& bulk, const verbs::Address& peer)
      : context_(context), host_(host), bulk_(bulk), peer_(peer) {}

  // Requests may be added to the bulk channel from now on; by the puller, once the owner has
  // answered what it is asked in this call. Errors: the device has no queue pairs left, or they
  // failed to come up a moment ago.
  absl::Status Need();
  // Puller: may_join() has come true.
  void OnMayJoin();
  // A transfer over the rail has ended.
  void Moved() { needed_at_ = context_.loop.Now(); }
  // Owner: accepts one of the peer's queue pairs.
  absl::Status Accept(verbs::ConnectionRequest& request, const Hello& theirs);
  // kInvalidArgument: out of turn.
  absl::Status OnPeerDown(absl::Span<const WantedWrite> wanted);

  bool up() const { return state_ == State::kUp; }
  // True if flushed requests, or at the owner the peer's disconnecting, do not end the connection:
  // the puller gives the queue pairs back, or their next user sees the failure.
  bool may_go() const {
    return state_ == State::kJoining || (bulk_.side() == BulkChannel::Side::kOwner && bulk_.idle());
  }
  bool Has(uint32_t queue_pair_number) const { return links_ != nullptr && links_->Has(queue_pair_number); }

  // Disconnects, for a teardown.
  void DropLinks() { links_.reset(); }

 private:
  enum class State { kAbsent, kJoining, kUp, kLeaving };

  // RailLinks::User
  Hello MyHello(uint32_t queue, const Hello* asked) override { return host_.MyHello(queue, asked); }
  absl::Status CheckAnswer(const Hello& /*mine*/, const Hello& theirs) override { return host_.CheckProof(theirs); }
  void OnPeerHello(const Hello& theirs) override { bulk_.OnPeerHello(theirs.queue - 1u, theirs); }
  void OnLinksUp(const RailLinks::Path& path) override;
  void OnLinkLost(const verbs::ConnectionEvent& event) override;
  void OnBadHello(const absl::Status& status) override { host_.OnBadHello(status); }

  absl::Status Prepare();
  absl::Status Join();
  absl::Status Connect();
  void GiveUp(const absl::Status& status);
  void Leave();
  void Drop();
  void OnRest();
  uint32_t rail() const { return bulk_.shape().primary; }

  Context& context_;
  Host& host_;
  BulkChannel& bulk_;
  const verbs::Address peer_;
  State state_ = State::kAbsent;
  bool needed_ = false;               // puller, leaving: to be joined again
  bool connecting_ = false;           // puller, joining: the owner was asked
  base::Time needed_at_;              // last
  base::Time rests_until_;            // puller, after a failure to come up
  std::unique_ptr<RailLinks> links_;  // while the rail is there
  base::Timer timer_;                 // joining, leaving: the deadline; puller, up: the check for idleness
};

}  // namespace tokamak::transport
