// The handles of memory: regions and windows of a ProtectionDomain.
//
// verbs.h promises more than libibverbs. A region with bound windows cannot be deregistered (EBUSY,
// or EINVAL), so a region first deallocates the windows that were last bound in it; such a window
// gets a new ibv_mw at its next bind. So does a window whose queue pair has ended, since its ibv_mw
// would stay bound to that for ever.
//
// If a provider refuses to take a key back, no queue pair of its domain may reach the memory: the
// existing ones end, and no new one is made until the key was taken back.
//
// Thread rule: see verbs.h. A region may be dropped on any thread: the domain guards its list of
// windows.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/mutex.h"
#include "lib/verbs/ibv/context.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class IbvMemoryWindow;

class DomainMember {
 public:
  // A key that was to be revoked is still valid: the queue pair ends. From any thread.
  virtual void MemoryWasNotRevoked() = 0;

 protected:
  ~DomainMember() = default;
};

class Domain final {
 public:
  // Takes a key back. Returns 0, or an errno.
  using Revoke = std::function<int()>;

  Domain(std::shared_ptr<Context> context, ibv_pd* pd) : context_(std::move(context)), pd_(pd) {}
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  Context& context() const { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }
  ibv_pd* pd() const { return pd_; }
  base::Mutex& windows_mutex() ABSL_LOCK_RETURNED(windows_mutex_) { return windows_mutex_; }

  // Runs `revoke`, which is `call` of libibverbs. If the device refuses, all queue pairs of the
  // domain end, and it is tried again later. From any thread.
  void TakeBack(const char* call, Revoke revoke);

  void TakeBackWindow(ibv_mw* window);

  // kUnavailable: a key of the domain has not been taken back.
  absl::Status Add(DomainMember& member);
  void Remove(DomainMember& member);

 private:
  struct Kept {
    const char* call;
    Revoke revoke;
  };

  absl::Status TryKeptAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(members_mutex_);

  const std::shared_ptr<Context> context_;
  ibv_pd* const pd_;
  base::Mutex windows_mutex_;
  base::Mutex members_mutex_;
  std::vector<DomainMember*> members_ ABSL_GUARDED_BY(members_mutex_);
  std::vector<Kept> kept_ ABSL_GUARDED_BY(members_mutex_);  // keys not let go of
};

// Whether a queue pair, since its last reset, may still open windows to a peer. Shared with the
// windows that it bound.
struct QueuePairLife {
  std::atomic<bool> over{false};
};

class IbvMemoryRegion final : public MemoryRegion {
 public:
  // Errors: see ProtectionDomain::RegisterMemory.
  static absl::StatusOr<std::unique_ptr<IbvMemoryRegion>> Register(std::shared_ptr<Domain> domain,
                                                                   absl::Span<uint8_t> memory, Access access);
  IbvMemoryRegion(std::shared_ptr<Domain> domain, ibv_mr* region, absl::Span<uint8_t> memory)
      : domain_(std::move(domain)), region_(region), memory_(memory) {}
  ~IbvMemoryRegion() override;

  uint8_t* address() const override { return memory_.data(); }
  uint64_t length() const override { return memory_.size(); }
  uint32_t lkey() const override { return region_->lkey; }
  uint32_t rkey() const override { return region_->rkey; }

  const Domain* domain() const { return domain_.get(); }

 private:
  friend class IbvMemoryWindow;

  const std::shared_ptr<Domain> domain_;
  ibv_mr* const region_;
  const absl::Span<uint8_t> memory_;
  std::vector<IbvMemoryWindow*> windows_ ABSL_GUARDED_BY(domain_->windows_mutex());  // bound here last
};

class IbvMemoryWindow final : public MemoryWindow {
 public:
  static absl::StatusOr<std::unique_ptr<IbvMemoryWindow>> Allocate(std::shared_ptr<Domain> domain);
  IbvMemoryWindow(std::shared_ptr<Domain> domain, ibv_mw* window)
      : domain_(std::move(domain)), window_(window), rkey_(window->rkey) {}
  ~IbvMemoryWindow() override;

  uint32_t rkey() const override { return rkey_; }

  const Domain* domain() const { return domain_.get(); }

  // Fills in the bind of `request` through the queue pair of `life`, and notes it at the region;
  // nothing is bound yet. Errors: the device has no more windows (only if this one has to be
  // replaced).
  absl::Status PrepareBind(const SendRequest& request, const std::shared_ptr<QueuePairLife>& life, ibv_send_wr* to);

  // The bind was posted: the key changes.
  void Posted(uint32_t rkey);

 private:
  friend class IbvMemoryRegion;

  absl::Status Replace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(domain_->windows_mutex());
  void Leave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(domain_->windows_mutex());

  const std::shared_ptr<Domain> domain_;
  ibv_mw* window_ ABSL_GUARDED_BY(domain_->windows_mutex());  // null once the region was dropped
  uint32_t rkey_;
  // The region of its last bind, and the life of that bind's queue pair.
  IbvMemoryRegion* region_ ABSL_GUARDED_BY(domain_->windows_mutex()) = nullptr;
  std::shared_ptr<QueuePairLife> life_ ABSL_GUARDED_BY(domain_->windows_mutex());
};

}  // namespace tokamak::verbs::ibv
