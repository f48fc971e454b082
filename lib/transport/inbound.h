// Inbound is our side of a connection that a peer made: it serves the peer's transfers and calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/containers/numbered_table.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/incoming_calls.h"
#include "lib/transport/peer_connection.h"
#include "lib/transport/serve.h"

namespace tokamak::transport {

class Inbound final : public PeerConnection::User, public Serve::Host {
 public:
  class Keeper {
   public:
    virtual ~Keeper() = default;
    // Hands out a connection that is over, to be dropped.
    virtual std::unique_ptr<Inbound> TakeOut(Inbound& inbound) = 0;
    // The connection is up: where peers are authenticated, this one has proven itself. Errors:
    // there is no room for it; it ends.
    virtual absl::Status OnUp(Inbound& inbound) = 0;
  };

  // `theirs`: hello of the first queue pair.
  static absl::StatusOr<std::unique_ptr<Inbound>> Create(Context& context, Keeper& keeper, const verbs::Address& peer,
                                                         const Hello& theirs);

  absl::Status Accept(verbs::ConnectionRequest& request, const Hello& theirs) {
    return connection_->Accept(request, theirs);
  }
  // True if a bulk queue pair of the primary rail may try.
  bool TakesBulk(const Hello& theirs) const { return HasShapeOf(theirs); }
  // True if one of another rail may.
  bool TakesRails(const Hello& theirs) const { return HasShapeOf(theirs) && connection_->up(); }
  const verbs::Address& peer() const { return peer_; }
  uint64_t token() const { return token_; }
  // True if it may give way to another connection.
  bool idle() const { return connection_->up() && !busy(); }
  // Time of the last request or arrival.
  base::Time asked_at() const { return asked_at_; }

  // Serve::Host
  PeerConnection& connection() override { return *connection_; }
  void Forget(Serve* serve, uint64_t number) override;

  // From the moment on that its peer may have a part in what is shared: at once, or once it has
  // proven itself.
  void Admit() { membership_.emplace(context_.shares, peer_.ip); }

  // PeerConnection::User
  void OnUp() override;
  absl::Status OnMessage(const Message& message, CopyBudget& budget) override;
  absl::Status OnNote(const Note& note) override;
  void OnRails(absl::Span<const verbs::Address>) override {}
  std::vector<WantedWrite> WritesWanted() const override { return {}; }
  bool bulk_wanted() const override { return false; }  // the puller decides
  void OnBulkFailed(const absl::Status& /*status*/) override {}
  bool busy() const override { return !serves_.empty() || !calls_->empty(); }
  void OnBroken(const absl::Status& status) override;

 private:
  Inbound(Context& context, Keeper& keeper, const verbs::Address& peer, uint64_t token)
      : context_(context), keeper_(keeper), peer_(peer), token_(token), asked_at_(context.loop.Now()) {}
  bool HasShapeOf(const Hello& theirs) const {
    return !connection_->broken() && theirs.bulk_queue_pairs == connection_->bulk().shape().each &&
           theirs.primary == connection_->bulk().shape().primary;
  }
  absl::Status TakeNumber(uint64_t number);
  absl::Status OnTransfer(const Header& header);
  void Refuse(const Header& transfer, const absl::Status& why);
  absl::Status OnEnd(const Header& header);

  Context& context_;
  Keeper& keeper_;
  const verbs::Address peer_;
  const uint64_t token_;
  base::Time asked_at_;
  std::optional<PeerShares::Membership> membership_;  // from Admit on; outlives the serves that it counts
  uint64_t last_number_ = 0;
  base::NumberedTable<Serve> serves_;
  std::optional<IncomingCalls> calls_;          // from Create on
  std::unique_ptr<PeerConnection> connection_;  // last: gone before the pins of what it touches
};

}  // namespace tokamak::transport
