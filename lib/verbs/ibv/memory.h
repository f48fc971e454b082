// The handles of memory: regions and windows of a ProtectionDomain.
//
// libibverbs leaves two promises of verbs.h to the program. A region with windows bound in it
// cannot be deregistered (EBUSY, or EINVAL), so a region knows the windows that were bound in it
// last and deallocates them first; such a window gets a new one of libibverbs' when it is bound the
// next time. And a window whose queue pair ended stays bound to it for ever, so it is replaced,
// too, when it is bound through another.
//
// A provider may refuse to take a key back. Then no queue pair of its domain may reach the memory:
// the existing ones end, and no new one is made until the key could be taken back.
//
// Thread rule: see verbs.h. A region may be dropped on any thread, so the domain guards its list of
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

// A queue pair, for its domain.
class DomainMember {
 public:
  // A key of memory that was to be revoked is still valid: the queue pair ends. From any thread.
  virtual void MemoryWasNotRevoked() = 0;

 protected:
  ~DomainMember() = default;
};

// The protection domain itself; its handle and all objects made in it share it.
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
  // domain end and it is tried again later. From any thread.
  void TakeBack(const char* call, Revoke revoke);

  void TakeBackWindow(ibv_mw* window);

  // kUnavailable: memory that a peer could reach through the queue pair has not been taken back.
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
  std::vector<Kept> kept_ ABSL_GUARDED_BY(members_mutex_);  // keys that the device did not let go of
};

// Whether a queue pair, since its last reset, may still open windows to a peer. Windows that it
// bound share it.
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

  // Fills in the bind of `request` through the queue pair of `life`. Nothing is bound yet, but the
  // region knows of it. Errors: the device has no more windows (only if this one has to be
  // replaced).
  absl::Status PrepareBind(const SendRequest& request, const std::shared_ptr<QueuePairLife>& life, ibv_send_wr* to);

  // The bind was posted: the key changes now.
  void Posted(uint32_t rkey);

 private:
  friend class IbvMemoryRegion;

  absl::Status Replace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(domain_->windows_mutex());
  void Leave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(domain_->windows_mutex());

  const std::shared_ptr<Domain> domain_;
  ibv_mw* window_ ABSL_GUARDED_BY(domain_->windows_mutex());  // null once its region was dropped
  uint32_t rkey_;
  // The region of its last bind, and the life of the queue pair of that bind.
  IbvMemoryRegion* region_ ABSL_GUARDED_BY(domain_->windows_mutex()) = nullptr;
  std::shared_ptr<QueuePairLife> life_ ABSL_GUARDED_BY(domain_->windows_mutex());
};

}  // namespace tokamak::verbs::ibv
