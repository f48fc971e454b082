#include "lib/transport/memory/registration_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::transport {
namespace {

// As an arena's: peers may read all of a block.
constexpr verbs::Access kAccess = verbs::kLocalWrite | verbs::kRemoteRead | verbs::kRelaxedOrdering;

}  // namespace

absl::StatusOr<Lease> RegistrationCache::Acquire(absl::Span<uint8_t> memory, Use use) {
  const auto first = reinterpret_cast<uintptr_t>(memory.data()), arena = reinterpret_cast<uintptr_t>(arena_.data());
  if (memory.empty() || first < arena || first - arena > arena_.size() ||
      memory.size() > arena_.size() - (first - arena)) {
    return absl::InvalidArgumentError(
        absl::StrCat(memory.size(), " bytes that are not inside the store of ", arena_.size()));
  }
  if (use == Use::kWriteTarget || (use == Use::kReadTarget && reads_need_own_keys_)) {
    return others_->Acquire(memory, use);
  }
  const size_t begin = first - arena, end = begin + memory.size();
  const base::MutexLock lock(mutex_);
  const auto found = std::find_if(cached_.begin(), cached_.end(),
                                  [=](const Cached& one) { return one.begin <= begin && end <= one.end; });
  if (found != cached_.end()) {
    cached_.splice(cached_.begin(), cached_, found);
    return Lease(found->region, /*registered_now=*/false);
  }
  if (!MakeRoom()) return others_->Acquire(memory, use);
  const size_t from = begin / block_ * block_;
  const size_t to = std::min(arena_.size(), (end + block_ - 1) / block_ * block_);
  auto region = domain_.RegisterMemory(arena_.subspan(from, to - from), kAccess);
  if (!region.ok()) return region.status();
  cached_.push_front({from, to, *std::move(region)});
  return Lease(cached_.front().region, /*registered_now=*/true);
}

size_t RegistrationCache::size() const {
  const base::MutexLock lock(mutex_);
  return cached_.size();
}

bool RegistrationCache::MakeRoom() {
  if (cached_.size() < kMaxRegions) return true;
  const auto unused =
      std::find_if(cached_.rbegin(), cached_.rend(), [](const Cached& one) { return one.region.use_count() == 1; });
  if (unused == cached_.rend()) return false;
  cached_.erase(std::next(unused).base());
  return true;
}

}  // namespace tokamak::transport
