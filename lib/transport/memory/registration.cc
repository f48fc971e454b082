#include "lib/transport/memory/registration.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/transport/memory/registration_cache.h"

namespace tokamak::transport {
namespace {

using verbs::Access;

// Memory is read only after a completion has reported it.
constexpr Access kOrder = verbs::kRelaxedOrdering;

Access AccessFor(Registration::Use use, const verbs::Limits& limits) {
  switch (use) {
    case Registration::Use::kReadSource:
      return verbs::kRemoteRead;
    case Registration::Use::kReadTarget:
      return kOrder | verbs::kLocalWrite |
             (limits.read_sink_needs_remote_write ? verbs::kRemoteWrite : verbs::kLocalRead);
    case Registration::Use::kWriteTarget:
      return kOrder | verbs::kLocalWrite | verbs::kRemoteWrite;
  }
  return verbs::kLocalRead;
}

class OnDemand final : public Registration {
 public:
  OnDemand(verbs::Device& device, verbs::ProtectionDomain& domain) : device_(device), domain_(domain) {}

  absl::StatusOr<Lease> Acquire(absl::Span<uint8_t> memory, Use use) override {
    auto region = domain_.RegisterMemory(memory, AccessFor(use, device_.limits()));
    if (!region.ok()) return region.status();
    return Lease(*std::move(region));
  }
  verbs::MemoryRegion* GroundOf(absl::Span<uint8_t>) override { return nullptr; }

 private:
  verbs::Device& device_;
  verbs::ProtectionDomain& domain_;
};

class Arena final : public Registration {
 public:
  Arena(verbs::Device& device, verbs::ProtectionDomain& domain, absl::Span<uint8_t> arena,
        std::unique_ptr<verbs::MemoryRegion> region, bool windows)
      : device_(device), on_demand_(device, domain), arena_(arena), region_(std::move(region)), windows_(windows) {}

  absl::StatusOr<Lease> Acquire(absl::Span<uint8_t> memory, Use use) override {
    if (!Covers(memory)) {
      return absl::InvalidArgumentError(
          absl::StrCat(memory.size(), " bytes that are not inside the registered arena of ", arena_.size()));
    }
    // Peers never write through the arena's key; iWARP's READs need a remote one.
    const bool own =
        use == Use::kWriteTarget || (use == Use::kReadTarget && device_.limits().read_sink_needs_remote_write);
    if (own) return on_demand_.Acquire(memory, use);
    return Lease(region_->lkey(), region_->rkey());
  }
  verbs::MemoryRegion* GroundOf(absl::Span<uint8_t> memory) override {
    return windows_ && Covers(memory) ? region_.get() : nullptr;
  }

 private:
  bool Covers(absl::Span<uint8_t> memory) const {
    const auto begin = reinterpret_cast<uintptr_t>(memory.data());
    const auto arena = reinterpret_cast<uintptr_t>(arena_.data());
    return !memory.empty() && begin >= arena && begin - arena <= arena_.size() &&
           memory.size() <= arena_.size() - (begin - arena);
  }

  verbs::Device& device_;
  OnDemand on_demand_;
  const absl::Span<uint8_t> arena_;
  const std::unique_ptr<verbs::MemoryRegion> region_;
  const bool windows_;  // may be bound in it
};

}  // namespace

absl::StatusOr<std::unique_ptr<Registration>> RegisterArena(verbs::Device& device, verbs::ProtectionDomain& domain,
                                                            absl::Span<uint8_t> arena) {
  constexpr Access kAccess = kOrder | verbs::kLocalWrite | verbs::kRemoteRead;
  bool windows = device.limits().memory_windows;
  auto region = domain.RegisterMemory(arena, windows ? kAccess | verbs::kWindowBind : kAccess);
  if (windows && !region.ok()) {
    LOG(WARNING) << device.name()
                 << " does not let windows be bound in the store, so each pull by write registers: " << region.status();
    windows = false;
    region = domain.RegisterMemory(arena, kAccess);
  }
  if (!region.ok()) return region.status();
  return std::make_unique<Arena>(device, domain, arena, *std::move(region), windows);
}

std::unique_ptr<Registration> RegisterOnDemand(verbs::Device& device, verbs::ProtectionDomain& domain) {
  return std::make_unique<OnDemand>(device, domain);
}

std::unique_ptr<Registration> RegisterCached(verbs::Device& device, verbs::ProtectionDomain& domain,
                                             absl::Span<uint8_t> arena) {
  return std::make_unique<RegistrationCache>(domain, arena, RegisterOnDemand(device, domain),
                                             device.limits().read_sink_needs_remote_write);
}

}  // namespace tokamak::transport
