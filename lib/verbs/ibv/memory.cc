#include "lib/verbs/ibv/memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/verbs/ibv/translation/errors.h"

namespace tokamak::verbs::ibv {
namespace {

// A lost device has let go of the memory.
bool HasLetGo(int error) { return error == 0 || error == EIO || error == ENODEV; }

}  // namespace

Domain::~Domain() {
  {
    const base::MutexLock lock(members_mutex_);
    (void)TryKeptAgain();
  }
  const int error = ibv_dealloc_pd(pd_);
  LOG_IF(ERROR, error != 0) << "ibv_dealloc_pd: " << std::strerror(error);
}

void Domain::TakeBack(const char* call, Revoke revoke) {
  const int error = revoke();
  if (HasLetGo(error)) return;
  const base::MutexLock lock(members_mutex_);
  kept_.push_back({call, std::move(revoke)});
  for (DomainMember* member : members_) member->MemoryWasNotRevoked();
  LOG(ERROR) << context_->name() << ": " << call << ": " << std::strerror(error)
             << ": peers may still reach memory that was to be used again, so this device's " << members_.size()
             << " queue pairs end, and new ones wait until it can be taken back; where that does not come, restart "
                "this process, and look for the driver's words in dmesg";
}

void Domain::TakeBackWindow(ibv_mw* window) {
  TakeBack("ibv_dealloc_mw", [window] { return ibv_dealloc_mw(window); });
}

absl::Status Domain::Add(DomainMember& member) {
  const base::MutexLock lock(members_mutex_);
  if (absl::Status s = TryKeptAgain(); !s.ok()) return s;
  members_.push_back(&member);
  return absl::OkStatus();
}

void Domain::Remove(DomainMember& member) {
  const base::MutexLock lock(members_mutex_);
  members_.erase(std::remove(members_.begin(), members_.end(), &member), members_.end());
}

// The earliest first: a window before its region.
absl::Status Domain::TryKeptAgain() {
  if (kept_.empty()) return absl::OkStatus();
  for (; !kept_.empty(); kept_.erase(kept_.begin())) {
    const int error = kept_.front().revoke();
    if (HasLetGo(error)) continue;
    return absl::UnavailableError(
        absl::StrCat(context_->name(), ": memory that peers may still reach is not taken back (", kept_.front().call,
                     ": ", std::strerror(error), "): restart this process"));
  }
  LOG(INFO) << context_->name() << ": all memory was taken back after all: queue pairs can be made again";
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<IbvMemoryRegion>> IbvMemoryRegion::Register(std::shared_ptr<Domain> domain,
                                                                           absl::Span<uint8_t> memory, Access access) {
  if (memory.empty()) return absl::InvalidArgumentError("memory of no bytes cannot be registered");
  if ((access & (kRemoteWrite | kRemoteAtomic)) != 0 && (access & kLocalWrite) == 0) {
    return absl::InvalidArgumentError("kRemoteWrite and kRemoteAtomic need kLocalWrite");
  }
  if ((access & kPhantom) != 0) return absl::UnimplementedError("hardware moves all bytes: no kPhantom");
  const Limits& limits = domain->context().limits();
  if ((access & kRemoteAtomic) != 0 && !limits.atomics) return absl::UnimplementedError("the device has no atomics");
  if ((access & kWindowBind) != 0 && !limits.memory_windows) {
    return absl::UnimplementedError("the device has no memory windows");
  }
  const bool relaxed = (access & kRelaxedOrdering) != 0;
  if (relaxed && (access & kRemoteAtomic) != 0) {
    return absl::InvalidArgumentError("kRelaxedOrdering does not go with kRemoteAtomic");
  }
  const unsigned int flags = AccessFlags(access);
  errno = 0;
  ibv_mr* region = ibv_reg_mr(domain->pd(), memory.data(), memory.size(),
                              static_cast<int>(flags | (relaxed ? unsigned{IBV_ACCESS_RELAXED_ORDERING} : 0u)));
  if (const int refused = errno; region == nullptr && relaxed && (refused == EINVAL || refused == EOPNOTSUPP)) {
    errno = 0;
    region = ibv_reg_mr(domain->pd(), memory.data(), memory.size(), static_cast<int>(flags));
    if (region != nullptr) domain->context().NoteRelaxedOrdering(refused);
  } else if (region != nullptr && relaxed) {
    domain->context().NoteRelaxedOrdering(0);
  }
  if (region == nullptr) return RegistrationStatus(errno == 0 ? EIO : errno, memory.size());
  return std::make_unique<IbvMemoryRegion>(std::move(domain), region, memory);
}

IbvMemoryRegion::~IbvMemoryRegion() {
  {
    const base::MutexLock lock(domain_->windows_mutex());
    for (IbvMemoryWindow* window : windows_) {
      domain_->TakeBackWindow(window->window_);
      window->window_ = nullptr;
      window->region_ = nullptr;
    }
  }
  domain_->TakeBack("ibv_dereg_mr", [region = region_] { return ibv_dereg_mr(region); });
}

absl::StatusOr<std::unique_ptr<IbvMemoryWindow>> IbvMemoryWindow::Allocate(std::shared_ptr<Domain> domain) {
  if (!domain->context().limits().memory_windows) return absl::UnimplementedError("the device has no memory windows");
  errno = 0;
  ibv_mw* const window = ibv_alloc_mw(domain->pd(), IBV_MW_TYPE_2);
  if (window == nullptr) return ErrnoStatus(errno == 0 ? EIO : errno, "ibv_alloc_mw");
  return std::make_unique<IbvMemoryWindow>(std::move(domain), window);
}

IbvMemoryWindow::~IbvMemoryWindow() {
  const base::MutexLock lock(domain_->windows_mutex());
  Leave();
  if (window_ != nullptr) domain_->TakeBackWindow(window_);
}

absl::Status IbvMemoryWindow::PrepareBind(const SendRequest& request, const std::shared_ptr<QueuePairLife>& life,
                                          ibv_send_wr* to) {
  auto& region = static_cast<IbvMemoryRegion&>(*request.bind.region);
  const base::MutexLock lock(domain_->windows_mutex());
  const bool stranded = life_ != nullptr && life_ != life && life_->over.load();
  if (window_ == nullptr || stranded) {
    if (absl::Status s = Replace(); !s.ok()) return s;
  }
  // Between domains the device refuses the bind, when its turn comes.
  if (region.domain_ == domain_) {
    region.domain_->windows_mutex().AssertHeld();  // the same
    Leave();
    region.windows_.push_back(this);
    region_ = &region;
    life_ = life;
  }
  to->bind_mw.mw = window_;
  to->bind_mw.rkey = ibv_inc_rkey(window_->rkey);
  to->bind_mw.bind_info.mr = region.region_;
  to->bind_mw.bind_info.addr = reinterpret_cast<uint64_t>(request.bind.address);
  to->bind_mw.bind_info.length = request.bind.length;
  to->bind_mw.bind_info.mw_access_flags = AccessFlags(request.bind.access);
  return absl::OkStatus();
}

void IbvMemoryWindow::Posted(uint32_t rkey) {
  const base::MutexLock lock(domain_->windows_mutex());
  if (window_ != nullptr) window_->rkey = rkey;
  rkey_ = rkey;
}

absl::Status IbvMemoryWindow::Replace() {
  errno = 0;
  ibv_mw* const fresh = ibv_alloc_mw(domain_->pd(), IBV_MW_TYPE_2);
  if (fresh == nullptr) return ErrnoStatus(errno == 0 ? EIO : errno, "ibv_alloc_mw");
  if (window_ != nullptr) domain_->TakeBackWindow(window_);
  window_ = fresh;
  return absl::OkStatus();
}

void IbvMemoryWindow::Leave() {
  if (region_ == nullptr) return;
  region_->domain_->windows_mutex().AssertHeld();  // the same domain's
  std::vector<IbvMemoryWindow*>& all = region_->windows_;
  all.erase(std::remove(all.begin(), all.end(), this), all.end());
  region_ = nullptr;
}

}  // namespace tokamak::verbs::ibv
