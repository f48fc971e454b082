// Listening over librdmacm: RdmaListener, and RdmaRequest for each peer that asks.
//
// A presented request is on no loop's channel, so it outlives its listener and may be answered from
// the loop of any queue pair.
#pragma once

#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/lifetime.h"
#include "lib/verbs/ibv/cm/cm_channel.h"
#include "lib/verbs/ibv/cm/rdma_connection.h"
#include "lib/verbs/ibv/cm/rdma_core.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

using Unanswered = std::atomic<size_t>;

class RdmaRequest final : public CountedRequest {
 public:
  // Takes over `id`, kept by departures. Counts itself in `unanswered`.
  RdmaRequest(std::shared_ptr<RdmaCmCore> core, std::shared_ptr<Unanswered> unanswered, rdma_cm_id* id,
              const Address& peer, const RdmaOffer& offer);
  ~RdmaRequest() override;

  const Address& peer() const override { return peer_; }
  absl::Span<const uint8_t> private_data() const override { return offer_.carried.private_data; }

  // A failure, except for wrong options or queue pairs, rejects the peer.
  absl::StatusOr<std::unique_ptr<Connection>> Accept(QueuePair& queue_pair, const ConnectOptions& options,
                                                     ConnectionHandler handler) override;
  void Reject(absl::Span<const uint8_t> private_data) override;
  void Decided() override;

 private:
  rdma_cm_id* Answer();  // no longer unanswered; the id is the caller's

  const std::shared_ptr<RdmaCmCore> core_;
  const std::shared_ptr<Unanswered> unanswered_;
  std::atomic<bool> decided_{false};
  rdma_cm_id* id_;  // null once answered
  const Address peer_;
  const RdmaOffer offer_;
};

class RdmaListener final : public Listener, public CmSink {
 public:
  // kAlreadyExists: the port is taken. kFailedPrecondition: `address` is not our device's.
  static absl::StatusOr<std::unique_ptr<RdmaListener>> Listen(std::shared_ptr<RdmaCmCore> core,
                                                              std::shared_ptr<CmChannel> channel,
                                                              const Address& address, RequestHandler handler);
  ~RdmaListener() override;

  const Address& address() const override { return address_; }

  void OnCmEvent(const CmEvent& event) override;

 private:
  RdmaListener(std::shared_ptr<RdmaCmCore> core, std::shared_ptr<CmChannel> channel, RequestHandler handler);

  void Close();
  void Present(const CmEvent& event);
  void Refuse(rdma_cm_id* id);

  const std::shared_ptr<RdmaCmCore> core_;
  const std::shared_ptr<CmChannel> channel_;
  const std::shared_ptr<Unanswered> unanswered_;
  RequestHandler handler_;
  Address address_;
  rdma_cm_id* id_ = nullptr;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::verbs::ibv
