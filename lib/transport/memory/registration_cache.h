// RegistrationCache registers blocks of the store when the first transfer touches them, and keeps
// them: a pin-down cache, as MPI libraries have for the memory of programs (H. Tezuka et al.,
// "Pin-down cache", IPPS 1998). It locks less memory than an arena. The store is never unmapped, so
// no region goes stale.
//
// Law: a region lives while a lease uses it; the least recently used of the others goes first.
// Law: the target of a peer's WRITE is never a cached region.
// Bound: kMaxRegions. If leases use all of them, a transfer registers its own memory.
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "lib/base/mutex.h"
#include "lib/transport/memory/registration.h"

namespace tokamak::transport {

class RegistrationCache final : public Registration {
 public:
  static constexpr size_t kMaxRegions = 128;
  static constexpr size_t kBlock = 16 << 20;  // bytes

  // `arena` must stay mapped, and `domain` alive. `others` registers what is not cached.
  // `reads_need_own_keys`: iWARP's READs write through a remote key.
  RegistrationCache(verbs::ProtectionDomain& domain, absl::Span<uint8_t> arena, std::unique_ptr<Registration> others,
                    bool reads_need_own_keys, size_t block = kBlock)
      : domain_(domain),
        arena_(arena),
        others_(std::move(others)),
        reads_need_own_keys_(reads_need_own_keys),
        block_(block) {}

  absl::StatusOr<Lease> Acquire(absl::Span<uint8_t> memory, Use use) override;
  verbs::MemoryRegion* GroundOf(absl::Span<uint8_t>) override { return nullptr; }

  size_t size() const;

 private:
  struct Cached {
    size_t begin;  // bytes of the arena
    size_t end;
    std::shared_ptr<verbs::MemoryRegion> region;
  };

  // Returns false if all are in use.
  bool MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  verbs::ProtectionDomain& domain_;
  const absl::Span<uint8_t> arena_;
  const std::unique_ptr<Registration> others_;
  const bool reads_need_own_keys_;
  const size_t block_;
  mutable base::Mutex mutex_;
  std::list<Cached> cached_ ABSL_GUARDED_BY(mutex_);  // most recently used first
};

}  // namespace tokamak::transport
