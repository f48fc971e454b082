// Allocator hands out ranges of an arena that it never touches; its own records lie elsewhere.
//
// Two-level segregated fit (Masmano et al. 2004): free blocks hang in bins by size, two bitmaps
// find a bin that fits, neighbours merge when freed. Allocate and Free take constant time.
//
// Law: blocks tile the arena; no two free blocks touch; every offset is a multiple of kAlignment.
// Thread rule: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace tokamak::store {

// `size`: rounded up to kAlignment.
struct Allocation {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t block = 0;  // allocator's number
};

// Neighbours that merge once those in use are freed.
struct BlockRun {
  uint32_t first = 0;          // later free block
  std::vector<uint32_t> used;  // by address
};

class Allocator final {
 public:
  static constexpr uint64_t kAlignment = 64;
  static constexpr uint64_t kMaxCapacity = uint64_t{1} << 56;

  // Manages [0, capacity) bytes, `capacity` rounded down to kAlignment and at most kMaxCapacity.
  explicit Allocator(uint64_t capacity);

  // Returns nothing, changing nothing, if no free block is found. May overlook a block up to 1/32
  // larger than `size` among many of nearly its size, none up to largest_free(). Size 0 takes
  // kAlignment bytes.
  std::optional<Allocation> Allocate(uint64_t size);

  // CHECKs that it is allocated.
  void Free(const Allocation& allocation);

  // The cost of freeing, above 0; nothing: the block may not be freed.
  using Cost = absl::FunctionRef<std::optional<uint64_t>(uint32_t block)>;

  // Returns the cheapest run of at least `size` bytes, or nothing: first by its dearest block, then
  // by bytes in use. Takes time in proportion to all blocks.
  std::optional<BlockRun> FindRun(uint64_t size, Cost cost) const;

  // The same around a block in use, of blocks up to `dearest` each; nothing if kMaxGrowth blocks
  // form none.
  std::optional<BlockRun> GrowRun(uint32_t block, uint64_t size, uint64_t dearest, Cost cost) const;

  // Returns the first run, of blocks up to `dearest` each; nothing if kMaxSweep blocks form none.
  // Begins where the last sweep ended, and wraps.
  std::optional<BlockRun> SweepRun(uint64_t size, uint64_t dearest, Cost cost);

  // The run must be all free.
  Allocation AllocateRun(const BlockRun& run, uint64_t size);

  // Bytes that an Allocate is sure to get; exact when fewer than kMaxScan blocks are nearly as
  // large as the largest.
  uint64_t largest_free() const;

  uint64_t capacity() const { return capacity_ * kAlignment; }
  uint64_t used() const { return used_ * kAlignment; }
  uint64_t free() const { return capacity() - used(); }
  uint64_t allocations() const { return allocations_; }

  // For tests.
  absl::Status CheckConsistency() const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int kFineBits = 5;  // log2 of the bins between a power of two and the next
  static constexpr int kFineBins = 1 << kFineBits;
  static constexpr int kCoarseBins = 56 - 6 - kFineBits + 2;  // up to kMaxCapacity, in units of 64
  static constexpr int kMaxScan = 16;
  static constexpr int kMaxGrowth = 256;
  static constexpr int kMaxSweep = 4096;

  // In units of kAlignment.
  struct Block {
    enum class Use : uint8_t { kSpare, kFree, kUsed };
    uint64_t offset = 0;
    uint64_t size = 0;
    uint32_t before = kNone;  // neighbours in the arena
    uint32_t after = kNone;
    uint32_t previous = kNone;  // neighbours in a bin; `next` also chains spare slots
    uint32_t next = kNone;
    Use use = Use::kSpare;
  };
  struct Bin {
    int coarse;
    int fine;
  };

  static uint64_t ToUnits(uint64_t size);
  static Bin BinOf(uint64_t units);
  uint32_t FindInLargerBins(uint64_t units) const;
  uint32_t FindInOwnBin(uint64_t units) const;
  Allocation Take(uint32_t index, uint64_t units);
  bool IsFree(uint32_t index) const { return index != kNone && blocks_[index].use == Block::Use::kFree; }
  BlockRun RunOf(uint32_t first, uint32_t last) const;
  uint32_t NewBlock();
  void DropBlock(uint32_t index);
  void Link(uint32_t index);
  void Unlink(uint32_t index);
  void SplitTail(uint32_t index, uint64_t units);
  void MergeWithAfter(uint32_t index);

  const uint64_t capacity_;  // units
  uint64_t used_ = 0;        // units
  uint64_t allocations_ = 0;
  std::vector<Block> blocks_;
  uint32_t spare_ = kNone;
  uint32_t hand_ = 0;        // start of the next sweep
  uint64_t coarse_map_ = 0;  // bit c: row c has a block
  std::array<uint32_t, kCoarseBins> fine_map_{};
  std::array<std::array<uint32_t, kFineBins>, kCoarseBins> bins_;
};

}  // namespace tokamak::store
