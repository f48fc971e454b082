// Outbound is our side of a connection that we made: our pulls and calls to one peer.
//
// Pulls and calls share one rising sequence of numbers: a message for one that is over is late, for
// one never given a protocol violation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/containers/numbered_table.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/outgoing_calls.h"
#include "lib/transport/peer_connection.h"
#include "lib/transport/pull.h"

namespace tokamak::transport {

class Outbound final : public PeerConnection::User, public Pull::Host {
 public:
  class Keeper {
   public:
    virtual ~Keeper() = default;
    // Hands out a connection that is over, to be dropped.
    virtual std::unique_ptr<Outbound> TakeOut(Outbound& outbound) = 0;
    virtual void OnRails(const Outbound& outbound, absl::Span<const verbs::Address> rails) = 0;
  };

  // Connects to `peer` at its address `service` on rail `primary_rail`. Errors: the device's.
  static absl::StatusOr<std::unique_ptr<Outbound>> Create(Context& context, Keeper& keeper, const verbs::Address& peer,
                                                          uint32_t primary_rail, const verbs::Address& service,
                                                          uint64_t token);

  void StartPull(PullId id, const PullRequest& request, std::unique_ptr<Sink> sink);
  // Needs has_room_for_call().
  [[nodiscard]] base::Pending Call(absl::Span<const uint8_t> request, base::Duration deadline,
                                   OutgoingCalls::Urgency urgency, Caller::CallCallback done);
  bool has_room_for_call() const { return !calls_->full(); }
  // As asked for.
  const verbs::Address& peer() const { return peer_; }

  // Pull::Host
  PeerConnection& connection() override { return *connection_; }
  bool peer_has_room() const override { return pulls_asked_ < connection_->peer_hello().max_transfers; }
  bool write_has_turn() const override { return writes_asked_ < max_writes_; }
  void TakeTurn(bool by_write) override;
  void GiveTurn(bool by_write) override;
  uint64_t Bind(Pull* pull, bool by_write) override;
  void NotByWrite(uint64_t number) override;
  void Unbind(uint64_t number, bool by_write) override;
  void Forget(Pull* pull) override { pulls_.Release(pull); }
  base::Time bulk_moved_at() const override { return bulk_moved_at_; }
  void BulkMovedAt(base::Time now) override { bulk_moved_at_ = now; }

  // PeerConnection::User
  void OnUp() override;
  absl::Status OnMessage(const Message& message, CopyBudget& budget) override;
  absl::Status OnNote(const Note& note) override;
  void OnRails(absl::Span<const verbs::Address> rails) override { keeper_.OnRails(*this, rails); }
  std::vector<WantedWrite> WritesWanted() const override;
  bool bulk_wanted() const override;
  void OnBulkFailed(const absl::Status& status) override;
  bool busy() const override { return !pulls_.empty() || !calls_->empty(); }
  void OnBroken(const absl::Status& status) override;

 private:
  Outbound(Context& context, Keeper& keeper, const verbs::Address& peer)
      : context_(context), keeper_(keeper), peer_(peer) {}
  void GiveWriteTurn();
  absl::Status OnPullMessage(Pull& pull, const Message& message, CopyBudget& budget);
  absl::Status OnUnknown(const Header& header);

  Context& context_;
  Keeper& keeper_;
  const verbs::Address peer_;
  uint64_t last_number_ = 0;
  base::NumberedTable<Pull> pulls_;
  std::optional<OutgoingCalls> calls_;           // set by Create
  absl::flat_hash_map<uint32_t, Pull*> writes_;  // by the low bits that notes carry; never visited in its own order
  size_t max_writes_ = 0;                        // known when up
  uint32_t pulls_asked_ = 0;                     // or about to be
  uint32_t writes_asked_ = 0;                    // of these
  base::Time bulk_moved_at_;
  std::unique_ptr<PeerConnection> connection_;  // last: gone before the pulls whose memory it touches
};

}  // namespace tokamak::transport
