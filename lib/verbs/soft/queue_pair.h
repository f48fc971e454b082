// SoftQueuePair is the owner's half of a queue pair: it puts checked requests into the rings and
// rings the doorbell.
//
// Thread rule: the thread of the completion queues' loop.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/verbs/soft/nic.h"
#include "lib/verbs/soft/rc/connected_core.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

class SoftQueuePair final : public QueuePair {
 public:
  SoftQueuePair(std::shared_ptr<Nic> nic, ConnectedCore* core, const QueuePairOptions& options);
  ~SoftQueuePair() override;

  uint32_t number() const override { return core_->number(); }
  QueuePairState state() const override { return core_->state(); }
  PostResult PostSend(absl::Span<const SendRequest> requests) override;
  PostResult PostReceive(absl::Span<const ReceiveRequest> requests) override;
  absl::Status Modify(QueuePairState state, const QueuePairAttributes& attributes) override;

 private:
  absl::Status Prepare(const SendRequest& request);
  absl::Status Check(const SendRequest& request, uint64_t length) const;
  absl::Status CheckBind(const SendRequest& request) const;

  const std::shared_ptr<Nic> nic_;
  ConnectedCore* const core_;
  const uint32_t max_sges_;
  const uint32_t max_inline_;
};

}  // namespace tokamak::verbs::soft
