#include "lib/store/eviction.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::store {

void EvictionOrder::Add(Object& object) {
  CHECK(object.sealed() && object.info.pins == 0) << object.info.id.ToHex();
  List& list = ListOf(object);
  object.last_use = ++last_use_;
  const size_t block = object.allocation.block;
  if (block >= in_block_.size()) in_block_.resize(block + 1);
  in_block_[block] = &object;
  object.older = list.newest;
  object.newer = nullptr;
  (list.newest == nullptr ? list.oldest : list.newest->newer) = &object;
  list.newest = &object;
  ++list.objects;
  list.bytes += object.allocation.size;
}

void EvictionOrder::Remove(Object& object) {
  List& list = ListOf(object);
  CHECK(object.older != nullptr || list.oldest == &object) << object.info.id.ToHex() << " is not in the order";
  (object.older == nullptr ? list.oldest : object.older->newer) = object.newer;
  (object.newer == nullptr ? list.newest : object.newer->older) = object.older;
  object.older = object.newer = nullptr;
  in_block_[object.allocation.block] = nullptr;
  --list.objects;
  list.bytes -= object.allocation.size;
}

void EvictionOrder::Touch(Object& object) {
  Remove(object);
  Add(object);
}

Object* EvictionOrder::Next() const {
  if (pulled_.oldest != nullptr) return pulled_.oldest;
  return cache_ ? created_here_.oldest : nullptr;
}

std::optional<BlockRun> EvictionOrder::ChooseRun(Allocator& allocator, uint64_t size) const {
  if (std::optional<BlockRun> run = ChooseOldRun(pulled_, allocator, size)) return run;
  if (cache_ && pulled_.oldest == nullptr) {
    if (std::optional<BlockRun> run = ChooseOldRun(created_here_, allocator, size)) return run;
  }
  return allocator.FindRun(size, [this](uint32_t block) { return CostOf(block); });
}

std::optional<BlockRun> EvictionOrder::ChooseOldRun(const List& list, Allocator& allocator, uint64_t size) const {
  if (list.oldest == nullptr) return std::nullopt;
  const auto cost = [this](uint32_t block) { return CostOf(block); };
  const uint64_t oldest = *CostOf(list.oldest->allocation.block), newest = *CostOf(list.newest->allocation.block);
  const uint64_t dearest = oldest + (newest - oldest) / 2;
  const Object* object = list.oldest;
  for (int i = 0; i < kCandidates && object != nullptr; ++i, object = object->newer) {
    const uint32_t block = object->allocation.block;
    if (*cost(block) > dearest) break;
    if (std::optional<BlockRun> run = allocator.GrowRun(block, size, dearest, cost)) return run;
  }
  if (std::optional<BlockRun> run = allocator.SweepRun(size, dearest, cost)) return run;
  return allocator.SweepRun(size, newest - (newest - oldest) / 8, cost);
}

std::optional<uint64_t> EvictionOrder::CostOf(uint32_t block) const {
  const Object* object = block < in_block_.size() ? in_block_[block] : nullptr;
  if (object == nullptr) return std::nullopt;
  if (object->info.origin == Origin::kPulled) return object->last_use;
  if (!cache_) return std::nullopt;
  return (uint64_t{1} << 63) + object->last_use;
}

uint64_t EvictionOrder::evictable_bytes() const { return pulled_.bytes + (cache_ ? created_here_.bytes : 0); }

absl::Status EvictionOrder::CheckConsistency() const {
  uint64_t in_blocks = 0;
  for (size_t i = 0; i < in_block_.size(); ++i) {
    if (in_block_[i] == nullptr) continue;
    ++in_blocks;
    if (in_block_[i]->allocation.block != i)
      return absl::InternalError(absl::StrCat("block ", i, " has a wrong object"));
  }
  if (in_blocks != objects()) return absl::InternalError("the blocks and the eviction lists do not add up");
  if (absl::Status s = Check(pulled_, Origin::kPulled); !s.ok()) return s;
  return Check(created_here_, Origin::kCreatedHere);
}

absl::Status EvictionOrder::Check(const List& list, Origin origin) {
  uint64_t objects = 0, bytes = 0;
  const Object* older = nullptr;
  for (const Object* object = list.oldest; object != nullptr; older = object, object = object->newer) {
    const std::string id = object->info.id.ToHex();
    if (object->older != older) return absl::InternalError(absl::StrCat(id, " does not know its neighbour"));
    if (object->info.origin != origin) return absl::InternalError(absl::StrCat(id, " is in the wrong list"));
    if (!object->sealed() || object->info.pins != 0)
      return absl::InternalError(absl::StrCat(id, " may not be evicted"));
    ++objects;
    bytes += object->allocation.size;
  }
  if (older != list.newest || objects != list.objects || bytes != list.bytes) {
    return absl::InternalError("an eviction list does not add up");
  }
  return absl::OkStatus();
}

}  // namespace tokamak::store
