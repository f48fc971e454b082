// Registration makes the memory of objects known to the device: strategies behind one interface, to
// be compared.
//
//   arena      the whole store once, for REMOTE_READ only: nothing is registered on the data path
//              (default), unless the device has no memory windows and peers WRITE
//   on_demand  each transfer registers its own memory, as in the original study
//   cached     blocks of the store, when first touched (registration_cache.h)
//
// The target of a peer's WRITE gets a key for exactly its range, revoked before seal: a memory
// window in the arena if possible (write_target.h), otherwise a region.
// Thread rule: any thread, as ProtectionDomain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

// Dropping a lease that owns a region revokes its keys at once.
class Lease final {
 public:
  // Borrows keys of an owner that outlives it.
  Lease(uint32_t lkey, uint32_t rkey) : lkey_(lkey), rkey_(rkey) {}
  explicit Lease(std::unique_ptr<verbs::MemoryRegion> region) : Lease(std::move(region), true) {}
  // Shares a region; `registered_now`: by this lease.
  Lease(std::shared_ptr<verbs::MemoryRegion> region, bool registered_now)
      : lkey_(region->lkey()), rkey_(region->rkey()), registered_now_(registered_now), region_(std::move(region)) {}

  uint32_t lkey() const { return lkey_; }
  uint32_t rkey() const { return rkey_; }
  bool registered_now() const { return registered_now_; }

 private:
  uint32_t lkey_;
  uint32_t rkey_;
  bool registered_now_ = false;
  std::shared_ptr<verbs::MemoryRegion> region_;  // null: borrowed keys
};

class Registration {
 public:
  enum class Use {
    kReadSource,   // a peer READs it, or we SEND or WRITE from it
    kReadTarget,   // we READ into it
    kWriteTarget,  // a peer WRITEs into it: always a key of its own
  };

  virtual ~Registration() = default;
  virtual absl::StatusOr<Lease> Acquire(absl::Span<uint8_t> memory, Use use) = 0;
  // Returns where to bind a window for a peer's WRITEs into `memory`; null: use Acquire.
  virtual verbs::MemoryRegion* GroundOf(absl::Span<uint8_t> memory) = 0;
};

// `arena` must stay mapped, and `domain` alive, meanwhile.
absl::StatusOr<std::unique_ptr<Registration>> RegisterArena(verbs::Device& device, verbs::ProtectionDomain& domain,
                                                            absl::Span<uint8_t> arena);
std::unique_ptr<Registration> RegisterOnDemand(verbs::Device& device, verbs::ProtectionDomain& domain);
std::unique_ptr<Registration> RegisterCached(verbs::Device& device, verbs::ProtectionDomain& domain,
                                             absl::Span<uint8_t> arena);

}  // namespace tokamak::transport
