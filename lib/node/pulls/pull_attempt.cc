#include "lib/node/pulls/pull_attempt.h"

#include <utility>

#include "lib/base/check.h"
#include "lib/base/log.h"

namespace tokamak::node {

namespace {

// True if the peer is in trouble, not this object alone.
bool IsTroubleOfPeer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

// Returns an engine's index: 0 shares the control loop, the others take bulk in turn. `turn` 0: not
// bulk.
size_t EngineOf(size_t engines, uint64_t turn) { return turn == 0 || engines == 1 ? 0 : 1 + turn % (engines - 1); }

// True if both nodes have engines for bulk that reach each other. A software NIC for bulk has a UDP
// port of its own, which an RDMA device does not reach: between the two all goes over the first
// engines.
bool MeetForBulk(const Peers::Peer& peer, const std::vector<Engine*>& engines) {
  if (peer.engines.size() == 1 || engines.size() == 1) return false;
  return (peer.engines.back().udp_port == 0) == (engines.back()->address().udp_port == 0);
}

}  // namespace

PullAttempt::~PullAttempt() {
  CHECK(!moving() || !engine_->open()) << "the engines must have ended before the pulls: they still write to the store";
}

absl::Status PullAttempt::Begin(const directory::NodeId& holder, transport::PullRequest request,
                                absl::Span<uint8_t> memory, std::atomic<uint64_t>& moved) {
  CHECK(!moving());
  const PullNeeds& needs = context_.needs;
  const Peers::Peer& peer = *needs.peers.Find(holder);
  bulk_ = IsBulk(request, peer);
  const uint64_t turn = bulk_ ? ++context_.bulk_pulls : 0;
  engine_ = needs.engines[EngineOf(needs.engines.size(), turn)];
  request.owner = peer.engines[EngineOf(peer.engines.size(), turn)];
  request.deadline = context_.options.attempt_deadline;
  request.patience = context_.options.patience;
  const auto token = engine_->Pull(
      request, memory, moved,
      [this](const absl::Status& status, const transport::TransferReport& report) { Moved(status, report); });
  if (!token.ok()) return token.status();
  token_ = *token;
  holder_ = holder;
  needs.peers.Begin(holder);
  return absl::OkStatus();
}

void PullAttempt::Cancel() {
  CHECK(moving());
  engine_->Cancel(*token_);
}

bool PullAttempt::IsBulk(const transport::PullRequest& request, const Peers::Peer& peer) const {
  const PullNeeds& needs = context_.needs;
  return request.size.total() > context_.options.short_way && MeetForBulk(peer, needs.engines) &&
         !needs.peers.BulkRests(peer);
}

void PullAttempt::Moved(const absl::Status& status, const transport::TransferReport& report) {
  CHECK(moving());
  const Peers::End end = status.ok()               ? Peers::End::kOk
                         : IsTroubleOfPeer(status) ? Peers::End::kFailed
                                                   : Peers::End::kOther;
  if (bulk_ && end == Peers::End::kFailed && !report.heard) RestBulk(status);
  context_.needs.peers.Ended(holder_, end);
  context_.table.SlotFreed(holder_);
  token_.reset();
  report_ = report;
  owner_.OnMoved(status);
}

// Logs once for pulls that fail together.
void PullAttempt::RestBulk(const absl::Status& status) {
  Peers& peers = context_.needs.peers;
  LOG_IF(WARNING, !peers.BulkRests(*peers.Find(holder_)))
      << "the engine for bulk of " << holder_ << " is not reached (" << status.message()
      << "): for some seconds large objects go the way of small ones; is its port open?";
  peers.RestBulk(holder_);
}

}  // namespace tokamak::node
