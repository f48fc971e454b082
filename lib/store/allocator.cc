#include "lib/store/allocator.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::store {
namespace {

int HighestBit(uint64_t v) { return 63 - __builtin_clzll(v); }
int LowestBit(uint64_t v) { return __builtin_ctzll(v); }

}  // namespace

Allocator::Allocator(uint64_t capacity) : capacity_(capacity / kAlignment) {
  CHECK_LE(capacity, kMaxCapacity);
  for (auto& row : bins_) row.fill(kNone);
  if (capacity_ == 0) return;
  const uint32_t whole = NewBlock();
  blocks_[whole].size = capacity_;
  Link(whole);
}

std::optional<Allocation> Allocator::Allocate(uint64_t size) {
  if (size > capacity()) return std::nullopt;
  const uint64_t units = ToUnits(size);
  uint32_t index = FindInLargerBins(units);
  if (index == kNone) index = FindInOwnBin(units);
  if (index == kNone) return std::nullopt;
  return Take(index, units);
}

Allocation Allocator::Take(uint32_t index, uint64_t units) {
  Unlink(index);
  SplitTail(index, units);
  blocks_[index].use = Block::Use::kUsed;
  used_ += units;
  ++allocations_;
  return Allocation{blocks_[index].offset * kAlignment, units * kAlignment, index};
}

void Allocator::Free(const Allocation& allocation) {
  uint32_t index = allocation.block;
  CHECK_LT(index, blocks_.size());
  CHECK(blocks_[index].use == Block::Use::kUsed) << "freed twice: offset " << allocation.offset;
  CHECK_EQ(blocks_[index].offset * kAlignment, allocation.offset);
  CHECK_EQ(blocks_[index].size * kAlignment, allocation.size);
  used_ -= blocks_[index].size;
  --allocations_;

  const uint32_t after = blocks_[index].after;
  if (after != kNone && blocks_[after].use == Block::Use::kFree) {
    Unlink(after);
    MergeWithAfter(index);
  }
  const uint32_t before = blocks_[index].before;
  if (before != kNone && blocks_[before].use == Block::Use::kFree) {
    Unlink(before);
    MergeWithAfter(before);
    index = before;
  }
  Link(index);
}

// A window moves over the blocks by address, its begin as far as `size` allows. The queue holds
// candidates for its dearest block, the dearest in front: a new block drops the cheaper ones
// behind.
std::optional<BlockRun> Allocator::FindRun(uint64_t size, Cost cost) const {
  if (size > capacity() || capacity_ == 0) return std::nullopt;
  struct Priced {
    uint32_t block;
    uint64_t cost;
  };
  const uint64_t units = ToUnits(size);
  std::deque<Priced> dearest;
  uint64_t window = 0, window_used = 0;  // units
  uint32_t begin = kNone;
  uint32_t best_begin = kNone, best_end = kNone;
  std::pair<uint64_t, uint64_t> best_price;  // cost, units in use
  for (uint32_t end = 0; end != kNone; end = blocks_[end].after) {
    const std::optional<uint64_t> price = IsFree(end) ? 0 : cost(end);
    if (!price.has_value()) {
      dearest.clear();
      window = window_used = 0;
      begin = kNone;
      continue;
    }
    if (begin == kNone) begin = end;
    while (!dearest.empty() && dearest.back().cost <= *price) dearest.pop_back();
    dearest.push_back({end, *price});
    window += blocks_[end].size;
    window_used += IsFree(end) ? 0 : blocks_[end].size;
    while (window - blocks_[begin].size >= units) {
      window -= blocks_[begin].size;
      window_used -= IsFree(begin) ? 0 : blocks_[begin].size;
      if (dearest.front().block == begin) dearest.pop_front();
      begin = blocks_[begin].after;
    }
    if (window < units) continue;
    const std::pair<uint64_t, uint64_t> total(dearest.front().cost, window_used);
    if (best_begin != kNone && best_price <= total) continue;
    best_begin = begin;
    best_end = end;
    best_price = total;
  }
  if (best_begin == kNone) return std::nullopt;
  return RunOf(best_begin, best_end);
}

std::optional<BlockRun> Allocator::GrowRun(uint32_t block, uint64_t size, uint64_t dearest, Cost cost) const {
  if (size > capacity()) return std::nullopt;
  const uint64_t units = ToUnits(size);
  const auto joins = [&](uint32_t index) {
    if (index == kNone) return false;
    if (IsFree(index)) return true;
    const std::optional<uint64_t> price = cost(index);
    return price.has_value() && *price <= dearest;
  };
  uint32_t first = block, last = block;
  uint64_t grown = blocks_[block].size;
  for (int looked = 0; grown < units && looked < kMaxGrowth; ++looked) {
    const uint32_t before = blocks_[first].before, after = blocks_[last].after;
    if (IsFree(before) || (!IsFree(after) && !joins(after) && joins(before))) {
      first = before;
      grown += blocks_[first].size;
    } else if (joins(after)) {
      last = after;
      grown += blocks_[last].size;
    } else {
      return std::nullopt;
    }
  }
  if (grown < units) return std::nullopt;
  for (; grown - blocks_[first].size >= units; first = blocks_[first].after) grown -= blocks_[first].size;
  for (; grown - blocks_[last].size >= units; last = blocks_[last].before) grown -= blocks_[last].size;
  return RunOf(first, last);
}

std::optional<BlockRun> Allocator::SweepRun(uint64_t size, uint64_t dearest, Cost cost) {
  if (size > capacity() || capacity_ == 0) return std::nullopt;
  const uint64_t units = ToUnits(size);
  uint64_t window = 0;
  uint32_t begin = kNone;
  for (int looked = 0; looked < kMaxSweep; ++looked) {
    const uint32_t end = hand_;
    hand_ = blocks_[end].after;
    const std::optional<uint64_t> price = IsFree(end) ? 0 : cost(end);
    if (price.has_value() && *price <= dearest) {
      if (begin == kNone) begin = end;
      window += blocks_[end].size;
      for (; window - blocks_[begin].size >= units; begin = blocks_[begin].after) window -= blocks_[begin].size;
      if (window >= units) {
        if (hand_ == kNone) hand_ = 0;
        return RunOf(begin, end);
      }
    } else {
      window = 0;
      begin = kNone;
    }
    if (hand_ == kNone) {
      hand_ = 0;
      window = 0;
      begin = kNone;
    }
  }
  return std::nullopt;
}

BlockRun Allocator::RunOf(uint32_t first, uint32_t last) const {
  BlockRun run;
  for (uint32_t i = first;; i = blocks_[i].after) {
    if (!IsFree(i)) run.used.push_back(i);
    if (i == last) break;
  }
  // Freed blocks merge with a free neighbour; the front block stays.
  run.first = IsFree(blocks_[first].before) ? blocks_[first].before : first;
  return run;
}

Allocation Allocator::AllocateRun(const BlockRun& run, uint64_t size) {
  CHECK_LT(run.first, blocks_.size());
  CHECK(IsFree(run.first)) << "the run was not freed";
  CHECK_GE(blocks_[run.first].size, ToUnits(size));
  return Take(run.first, ToUnits(size));
}

uint64_t Allocator::largest_free() const {
  if (coarse_map_ == 0) return 0;
  const int coarse = HighestBit(coarse_map_);
  const int fine = HighestBit(fine_map_[coarse]);
  uint64_t largest = 0;
  uint32_t index = bins_[coarse][fine];
  for (int i = 0; i < kMaxScan && index != kNone; ++i, index = blocks_[index].next) {
    largest = std::max(largest, blocks_[index].size);
  }
  return largest * kAlignment;
}

uint64_t Allocator::ToUnits(uint64_t size) {
  return std::max<uint64_t>(1, size / kAlignment + (size % kAlignment != 0));
}

// Row 0: sizes below kFineBins; row c > 0: [2^(c+4), 2^(c+5)) in kFineBins equal parts.
Allocator::Bin Allocator::BinOf(uint64_t units) {
  if (units < kFineBins) return {0, static_cast<int>(units)};
  const int shift = HighestBit(units) - kFineBits;
  return {shift + 1, static_cast<int>((units >> shift) - kFineBins)};
}

// Returns the first block of the smallest bin in which every block fits.
uint32_t Allocator::FindInLargerBins(uint64_t units) const {
  if (units >= kFineBins) units += (uint64_t{1} << (HighestBit(units) - kFineBits)) - 1;
  Bin bin = BinOf(units);
  uint32_t fine = fine_map_[bin.coarse] & (UINT32_MAX << bin.fine);
  if (fine == 0) {
    const uint64_t coarse = coarse_map_ & (UINT64_MAX << bin.coarse << 1);
    if (coarse == 0) return kNone;
    bin.coarse = LowestBit(coarse);
    fine = fine_map_[bin.coarse];
  }
  return bins_[bin.coarse][LowestBit(fine)];
}

// Looks at the first kMaxScan of the bin of `units`.
uint32_t Allocator::FindInOwnBin(uint64_t units) const {
  const Bin bin = BinOf(units);
  uint32_t index = bins_[bin.coarse][bin.fine];
  for (int i = 0; i < kMaxScan && index != kNone; ++i, index = blocks_[index].next) {
    if (blocks_[index].size >= units) return index;
  }
  return kNone;
}

uint32_t Allocator::NewBlock() {
  if (spare_ == kNone) {
    CHECK_LT(blocks_.size(), size_t{kNone});
    blocks_.emplace_back();
    return static_cast<uint32_t>(blocks_.size() - 1);
  }
  const uint32_t index = spare_;
  spare_ = blocks_[index].next;
  blocks_[index] = Block();
  return index;
}

void Allocator::DropBlock(uint32_t index) {
  blocks_[index] = Block();
  blocks_[index].next = spare_;
  spare_ = index;
}

void Allocator::Link(uint32_t index) {
  Block& block = blocks_[index];
  const Bin bin = BinOf(block.size);
  uint32_t& head = bins_[bin.coarse][bin.fine];
  block.use = Block::Use::kFree;
  block.previous = kNone;
  block.next = head;
  if (head != kNone) blocks_[head].previous = index;
  head = index;
  fine_map_[bin.coarse] |= 1u << bin.fine;
  coarse_map_ |= uint64_t{1} << bin.coarse;
}

void Allocator::Unlink(uint32_t index) {
  const Block& block = blocks_[index];
  const Bin bin = BinOf(block.size);
  if (block.next != kNone) blocks_[block.next].previous = block.previous;
  if (block.previous != kNone) {
    blocks_[block.previous].next = block.next;
    return;
  }
  bins_[bin.coarse][bin.fine] = block.next;
  if (block.next != kNone) return;
  fine_map_[bin.coarse] &= ~(1u << bin.fine);
  if (fine_map_[bin.coarse] == 0) coarse_map_ &= ~(uint64_t{1} << bin.coarse);
}

// Splits the rest after `units` off an unlinked block.
void Allocator::SplitTail(uint32_t index, uint64_t units) {
  if (blocks_[index].size == units) return;
  const uint32_t tail = NewBlock();
  Block& block = blocks_[index];
  blocks_[tail].offset = block.offset + units;
  blocks_[tail].size = block.size - units;
  blocks_[tail].before = index;
  blocks_[tail].after = block.after;
  if (block.after != kNone) blocks_[block.after].before = tail;
  block.after = tail;
  block.size = units;
  Link(tail);
}

void Allocator::MergeWithAfter(uint32_t index) {
  const uint32_t gone = blocks_[index].after;
  if (hand_ == gone) hand_ = index;
  blocks_[index].size += blocks_[gone].size;
  blocks_[index].after = blocks_[gone].after;
  if (blocks_[gone].after != kNone) blocks_[blocks_[gone].after].before = index;
  DropBlock(gone);
}

absl::Status Allocator::CheckConsistency() const {
  uint64_t end = 0, used = 0, used_blocks = 0, free_blocks = 0;
  uint32_t before = kNone;
  // Block 0 begins the arena: the first made, and merging keeps the block in front.
  for (uint32_t i = capacity_ == 0 ? kNone : 0; i != kNone; before = i, i = blocks_[i].after) {
    const Block& block = blocks_[i];
    if (block.use == Block::Use::kSpare) return absl::InternalError(absl::StrCat("block ", i, " is spare"));
    if (block.offset != end) return absl::InternalError(absl::StrCat("block ", i, " leaves a gap or overlaps"));
    if (block.before != before) return absl::InternalError(absl::StrCat("block ", i, " does not know its neighbour"));
    if (block.size == 0) return absl::InternalError(absl::StrCat("block ", i, " is empty"));
    const bool is_free = block.use == Block::Use::kFree;
    if (is_free && before != kNone && blocks_[before].use == Block::Use::kFree) {
      return absl::InternalError(absl::StrCat("blocks ", before, " and ", i, " were not merged"));
    }
    end += block.size;
    if (is_free) {
      ++free_blocks;
    } else {
      ++used_blocks;
      used += block.size;
    }
  }
  if (end != capacity_) return absl::InternalError("the blocks do not tile the arena");
  if (capacity_ != 0 && blocks_[hand_].use == Block::Use::kSpare) return absl::InternalError("the sweep is lost");
  if (used != used_ || used_blocks != allocations_) return absl::InternalError("the used blocks do not add up");

  uint64_t binned = 0;
  for (int coarse = 0; coarse < kCoarseBins; ++coarse) {
    if (((coarse_map_ >> coarse) & 1) != (fine_map_[coarse] != 0)) return absl::InternalError("coarse map is wrong");
    for (int fine = 0; fine < kFineBins; ++fine) {
      const uint32_t head = bins_[coarse][fine];
      if (((fine_map_[coarse] >> fine) & 1) != (head != kNone)) return absl::InternalError("fine map is wrong");
      for (uint32_t i = head; i != kNone; i = blocks_[i].next) {
        const Bin bin = BinOf(blocks_[i].size);
        if (blocks_[i].use != Block::Use::kFree || bin.coarse != coarse || bin.fine != fine) {
          return absl::InternalError(absl::StrCat("block ", i, " hangs in a wrong bin"));
        }
        ++binned;
      }
    }
  }
  if (binned != free_blocks) return absl::InternalError("a free block hangs in no bin, or in two");
  return absl::OkStatus();
}

}  // namespace tokamak::store
