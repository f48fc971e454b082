// SoftSharedReceiveQueue is the owner's half of a shared receive queue. The NIC's half is
// SharedReceives.
//
// Thread rule: the thread of the queue pairs that draw from it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lib/verbs/soft/nic.h"
#include "lib/verbs/soft/posting.h"
#include "lib/verbs/soft/state/shared_receives.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

class SoftSharedReceiveQueue final : public SharedReceiveQueue {
 public:
  SoftSharedReceiveQueue(std::shared_ptr<Nic> nic, DomainId domain, uint32_t depth, uint32_t max_sges)
      : nic_(std::move(nic)),
        max_sges_(max_sges),
        receives_(std::make_shared<SharedReceives>(depth, max_sges, domain, this)) {}
  ~SoftSharedReceiveQueue() override {
    Nic::Control control(*nic_);
    nic_->CloseShared(*receives_);
  }

  PostResult PostReceive(absl::Span<const ReceiveRequest> requests) override {
    return PostReceives(requests, max_sges_, nic_->limits(), receives_->queue);
  }

  absl::Status Arm(uint32_t limit) override {
    const uint32_t depth = receives_->queue.depth();
    if (limit > depth) return absl::InvalidArgumentError(absl::StrCat("a limit of ", limit, " in a queue of ", depth));
    Nic::Control control(*nic_);
    nic_->ArmShared(*receives_, limit);
    return absl::OkStatus();
  }

  const Nic* nic() const { return nic_.get(); }
  const std::shared_ptr<SharedReceives>& receives() const { return receives_; }

 private:
  const std::shared_ptr<Nic> nic_;
  const uint32_t max_sges_;
  const std::shared_ptr<SharedReceives> receives_;
};

}  // namespace tokamak::verbs::soft
