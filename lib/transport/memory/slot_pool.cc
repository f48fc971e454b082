#include "lib/transport/memory/slot_pool.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::transport {

SlotPool::~SlotPool() { CHECK_EQ(taken_, 0u) << "slots that were not given back"; }

uint32_t SlotPool::BlockFor(uint32_t slot_size) { return std::max(kBlockBytes / slot_size, kMinBlock); }

absl::StatusOr<uint32_t> SlotPool::Take() {
  FindLowest();
  if (lowest_ == blocks_.size()) {
    if (absl::Status s = AddBlock(); !s.ok()) return s;
  }
  Block& block = *blocks_[lowest_];
  if (block.free.size() == block_) --blocks_free_;
  const uint32_t slot = block.free.back();
  block.free.pop_back();
  ++taken_;
  return slot;
}

absl::StatusOr<uint32_t> SlotPool::TakeSpare() {
  FindLowest();
  if (lowest_ == blocks_.size() && register_rest_.armed()) {
    return absl::ResourceExhaustedError("no further memory could be registered just before");
  }
  auto slot = Take();
  if (!slot.ok()) register_rest_ = loop_.RunAfter(kRegisterRest, [] {});
  return slot;
}

void SlotPool::FindLowest() const {
  while (lowest_ < blocks_.size() && (blocks_[lowest_] == nullptr || blocks_[lowest_]->free.empty())) ++lowest_;
}

bool SlotPool::HasLower(uint32_t slot) const {
  FindLowest();
  return lowest_ < slot / block_;
}

absl::Status SlotPool::AddBlock() {
  const uint64_t bytes = uint64_t{block_} * size_;
  auto block = std::make_unique<Block>();
  block->memory.reset(new uint8_t[bytes]);  // not cleared: unused slots are never touched
  auto region = domain_.RegisterMemory({block->memory.get(), bytes}, verbs::kLocalWrite | verbs::kRelaxedOrdering);
  if (!region.ok()) return region.status();
  block->region = *std::move(region);
  lowest_ = static_cast<size_t>(std::find(blocks_.begin(), blocks_.end(), nullptr) - blocks_.begin());
  const auto first = static_cast<uint32_t>(lowest_) * block_;
  for (uint32_t slot = first + block_; slot > first;) block->free.push_back(--slot);
  if (lowest_ == blocks_.size()) blocks_.emplace_back();
  blocks_[lowest_] = std::move(block);
  ++blocks_there_;
  ++blocks_free_;
  return absl::OkStatus();
}

void SlotPool::Give(uint32_t slot) {
  const size_t at = slot / block_;
  Block& block = *blocks_[at];
  DCHECK_LT(block.free.size(), block_);
  block.free.push_back(slot);
  --taken_;
  lowest_ = std::min(lowest_, at);
  if (block.free.size() < block_) return;
  if (blocks_free_ == 0) {
    ++blocks_free_;
  } else {
    blocks_[at].reset();
    --blocks_there_;
  }
}

}  // namespace tokamak::transport
