// PhantomRegistration registers an arena with a NIC that moves its lengths and not its bytes.
//
// The node's own accesses, as by store and eager messages, are real.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/transport/memory/registration.h"
#include "lib/verbs/verbs.h"

namespace tokamak::sim {

class PhantomRegistration final : public transport::Registration {
 public:
  // `arena` and `domain` must outlive it.
  static absl::StatusOr<std::unique_ptr<transport::Registration>> Register(verbs::ProtectionDomain& domain,
                                                                           absl::Span<uint8_t> arena) {
    auto region =
        domain.RegisterMemory(arena, verbs::kLocalWrite | verbs::kRemoteRead | verbs::kWindowBind | verbs::kPhantom);
    if (!region.ok()) return region.status();
    return std::unique_ptr<transport::Registration>(new PhantomRegistration(domain, *std::move(region)));
  }

  absl::StatusOr<transport::Lease> Acquire(absl::Span<uint8_t> memory, Use use) override {
    if (use != Use::kWriteTarget) return transport::Lease(arena_->lkey(), arena_->rkey());
    auto region = domain_.RegisterMemory(memory, verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kPhantom);
    if (!region.ok()) return region.status();
    return transport::Lease(*std::move(region));
  }
  verbs::MemoryRegion* GroundOf(absl::Span<uint8_t>) override { return arena_.get(); }

 private:
  PhantomRegistration(verbs::ProtectionDomain& domain, std::unique_ptr<verbs::MemoryRegion> arena)
      : domain_(domain), arena_(std::move(arena)) {}

  verbs::ProtectionDomain& domain_;
  const std::unique_ptr<verbs::MemoryRegion> arena_;
};

}  // namespace tokamak::sim
