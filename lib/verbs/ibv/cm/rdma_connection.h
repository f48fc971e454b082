// RdmaConnection is one connection over librdmacm, from its first step to its end: an id and its
// queue pair.
//
// Law: at most one kEstablished, then one kDisconnected; or one kRejected or kUnreachable; nothing
// after an end.
// Thread rule: the loop's of its queue pair.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/verbs/ibv/cm/cm_channel.h"
#include "lib/verbs/ibv/cm/connected_queue_pair.h"
#include "lib/verbs/ibv/cm/connection_rules.h"
#include "lib/verbs/ibv/cm/rdma_core.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

// A request as rdma_cm presented it.
struct RdmaOffer {
  Carried carried;
  uint8_t peer_serves = 0;  // reads
  uint8_t peer_asks = 0;
};

class RdmaConnection final : public Connection, private CmSink {
 public:
  // `options` are valid. Does nothing yet.
  RdmaConnection(std::shared_ptr<RdmaCmCore> core, std::shared_ptr<CmChannel> channel, HeldQueuePair queue_pair,
                 const Address& peer, const ConnectOptions& options, ConnectionHandler handler);
  ~RdmaConnection() override;

  const Address& peer() const override { return peer_; }

  // Starts the active side. Failures are events.
  void Start();

  // Starts the passive side. Takes over `id`, on no loop's channel. A failure has rejected the
  // peer.
  absl::Status Accept(rdma_cm_id* id, const RdmaOffer& offer);

 private:
  enum class Phase { kNew, kAddress, kRoute, kAsked, kAnswered, kUp, kOver };

  // The first delay before asking again a peer that still has an earlier connection of our queue
  // pair's number; doubles.
  static constexpr base::Duration kStaleDelay = base::Milliseconds(20);

  // The kernel's first wait for the peer's link address; doubles. Linux misses an answer that comes
  // at once, as over a virtual cable, and then sleeps for the whole wait.
  static constexpr base::Duration kAddressPatience = base::Milliseconds(20);

  void OnCmEvent(const CmEvent& event) override;
  void OnDeadline();

  absl::Status ResolveAddress();
  absl::Status ResolveRoute();
  bool TakeKnownPath();
  void KeepPath();
  absl::Status Ask();
  void OnAnswer(const CmEvent& event);
  void OnRejected(const CmEvent& event);
  void TryAgain(base::Duration delay);

  absl::Status WalkToReadyToSend(const ReliabilityOptions& reliability);
  absl::StatusOr<uint32_t> RouteMtu();
  absl::Status AskKernel(ibv_qp_state state, Step* step);
  rdma_conn_param Parameters(const ReliabilityOptions& reliability, const CarriedData& bytes) const;
  int MillisecondsUntil(base::Time time) const;
  void ReleaseId(bool disconnect);

  // Each may drop this.
  void Establish(absl::Span<const uint8_t> private_data);
  void End(ConnectionEvent::Kind kind, absl::Status why, absl::Span<const uint8_t> private_data = {});

  const std::shared_ptr<RdmaCmCore> core_;
  const std::shared_ptr<CmChannel> channel_;
  ConnectedQueuePair queue_pair_;
  const LocalPort port_;
  const Address peer_;
  const ReliabilityOptions reliability_;
  const uint32_t own_mtu_;
  const std::vector<uint8_t> private_data_;
  const base::Time until_;

  Phase phase_ = Phase::kNew;
  bool active_ = true;
  bool path_is_known_ = false;  // true if it was cached: the subnet manager was not asked
  bool walked_ = false;         // true once the queue pair has left Init
  rdma_cm_id* id_ = nullptr;
  uint32_t path_mtu_ = 0;
  uint32_t peer_queue_pair_ = 0;  // its number; 0: not known, for iWARP has none
  base::Duration stale_delay_ = kStaleDelay;
  base::Duration address_patience_ = kAddressPatience;
  base::Timer deadline_;
  base::Timer next_;  // a step to be taken outside of a call, or later
};

}  // namespace tokamak::verbs::ibv
