#include "lib/store/allocator.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"

namespace tokamak::store {
namespace {

TEST(AllocatorTest, ANewArenaIsOneFreeBlock) {
  const Allocator allocator(1 << 20);
  EXPECT_EQ(allocator.capacity(), 1u << 20);
  EXPECT_EQ(allocator.used(), 0u);
  EXPECT_EQ(allocator.largest_free(), 1u << 20);
}

TEST(AllocatorTest, TheWholeArenaCanBeOneAllocation) {
  for (const uint64_t capacity : {uint64_t{64}, uint64_t{64 * 33}, uint64_t{1000 * 64}, uint64_t{7} << 40}) {
    Allocator allocator(capacity);
    const auto allocation = allocator.Allocate(capacity);
    ASSERT_TRUE(allocation.has_value()) << capacity;
    EXPECT_EQ(allocation->size, capacity);
    EXPECT_EQ(allocator.largest_free(), 0u);
    EXPECT_FALSE(allocator.Allocate(1).has_value());
  }
}

TEST(AllocatorTest, OffsetsAreAlignedAndSizesRoundedUp) {
  Allocator allocator(1 << 20);
  for (const uint64_t size : {0, 1, 63, 64, 65, 1000}) {
    const auto allocation = allocator.Allocate(size);
    ASSERT_TRUE(allocation.has_value());
    EXPECT_EQ(allocation->offset % Allocator::kAlignment, 0u);
    EXPECT_EQ(allocation->size % Allocator::kAlignment, 0u);
    EXPECT_GE(allocation->size, std::max<uint64_t>(size, 1));
    EXPECT_LT(allocation->size, size + 65);
  }
}

TEST(AllocatorTest, RoundsTheCapacityDown) { EXPECT_EQ(Allocator(200).capacity(), 192u); }

TEST(AllocatorTest, AnArenaWithoutRoomForAnythingServesNothing) {
  Allocator allocator(63);
  EXPECT_EQ(allocator.largest_free(), 0u);
  EXPECT_FALSE(allocator.Allocate(0).has_value());
  EXPECT_TRUE(allocator.CheckConsistency().ok());
}

TEST(AllocatorTest, RefusesASizeThatWouldOverflow) {
  Allocator allocator(1 << 20);
  EXPECT_FALSE(allocator.Allocate(UINT64_MAX).has_value());
  EXPECT_FALSE(allocator.Allocate((1 << 20) + 1).has_value());
}

TEST(AllocatorTest, FreedNeighboursMergeIntoOneBlock) {
  Allocator allocator(3 * 64);
  const Allocation a = *allocator.Allocate(64), b = *allocator.Allocate(64), c = *allocator.Allocate(64);
  allocator.Free(a);
  allocator.Free(c);
  EXPECT_EQ(allocator.largest_free(), 64u);
  allocator.Free(b);
  EXPECT_EQ(allocator.largest_free(), 3 * 64u);
  EXPECT_TRUE(allocator.CheckConsistency().ok());
}

TEST(AllocatorTest, FindsABlockThatFitsExactlyThoughItsBinHoldsSmallerOnes) {
  // 2079 and 2048 units share a bin; a request is rounded up past that bin first.
  Allocator allocator((2048 + 1 + 2079 + 1) * 64);
  const Allocation small = *allocator.Allocate(2048 * 64), wall = *allocator.Allocate(64);
  const Allocation large = *allocator.Allocate(2079 * 64);
  ASSERT_TRUE(allocator.Allocate(64).has_value());
  allocator.Free(large);
  allocator.Free(small);
  EXPECT_EQ(allocator.largest_free(), 2079 * 64u);
  EXPECT_TRUE(allocator.Allocate(2079 * 64).has_value());
  EXPECT_TRUE(allocator.CheckConsistency().ok());
  allocator.Free(wall);
}

TEST(AllocatorDeathTest, FreeingTwiceIsACheck) {
  Allocator allocator(1 << 20);
  const Allocation a = *allocator.Allocate(100);
  allocator.Free(a);
  EXPECT_DEATH(allocator.Free(a), "freed twice");
}

TEST(AllocatorDeathTest, FreeingAnUnallocatedOffsetIsACheck) {
  Allocator allocator(1 << 20);
  Allocation a = *allocator.Allocate(100);
  a.offset += 64;
  EXPECT_DEATH(allocator.Free(a), "");
}

// Everything that was given out, in order of offset.
class Model {
 public:
  void Add(const Allocation& a) {
    ASSERT_TRUE(live_.emplace(a.offset, a.size).second);
    const auto it = live_.find(a.offset);
    if (it != live_.begin()) {
      ASSERT_LE(std::prev(it)->first + std::prev(it)->second, a.offset);
    }
    if (std::next(it) != live_.end()) {
      ASSERT_LE(a.offset + a.size, std::next(it)->first);
    }
    used_ += a.size;
  }
  void Remove(const Allocation& a) {
    live_.erase(a.offset);
    used_ -= a.size;
  }
  uint64_t used() const { return used_; }
  uint64_t LargestGap(uint64_t capacity) const {
    uint64_t largest = 0, end = 0;
    for (const auto& [offset, size] : live_) {
      largest = std::max(largest, offset - end);
      end = offset + size;
    }
    return std::max(largest, capacity - end);
  }

 private:
  std::map<uint64_t, uint64_t> live_;
  uint64_t used_ = 0;
};

uint64_t DrawSize(base::Random& random) {
  const uint64_t limit = uint64_t{1} << (4 + random.Below(14));
  return random.Below(limit);
}

TEST(AllocatorTest, RandomUseAgreesWithASimpleModel) {
  constexpr uint64_t kCapacity = 1 << 20;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    Allocator allocator(kCapacity);
    Model model;
    std::vector<Allocation> live;
    for (int step = 0; step < 2000; ++step) {
      if (random.Chance(0.55)) {
        const uint64_t size = DrawSize(random);
        const auto allocation = allocator.Allocate(size);
        if (allocation.has_value()) {
          ASSERT_GE(allocation->size, size);
          ASSERT_LE(allocation->offset + allocation->size, kCapacity);
          live.push_back(*allocation);
          ASSERT_NO_FATAL_FAILURE(model.Add(*allocation));
        } else {
          // No more than the promised part of a gap may be overlooked.
          ASSERT_LT(model.LargestGap(kCapacity), size + size / 32 + 64);
        }
      } else if (!live.empty()) {
        std::swap(live[random.Below(live.size())], live.back());
        allocator.Free(live.back());
        model.Remove(live.back());
        live.pop_back();
      }
      ASSERT_EQ(allocator.used(), model.used());
      ASSERT_EQ(allocator.allocations(), live.size());
      ASSERT_LE(allocator.largest_free(), model.LargestGap(kCapacity));
      if (step % 100 == 0) {
        ASSERT_EQ(allocator.CheckConsistency(), absl::OkStatus());
      }
      if (step % 100 == 50 && allocator.largest_free() != 0) {
        const auto largest = allocator.Allocate(allocator.largest_free());
        ASSERT_TRUE(largest.has_value());
        allocator.Free(*largest);
      }
    }
    for (const Allocation& a : live) allocator.Free(a);
    ASSERT_EQ(allocator.largest_free(), kCapacity);
    ASSERT_EQ(allocator.CheckConsistency(), absl::OkStatus());
  }
}

// An arena of many small blocks, some free, some that may be freed at a price, and some that stay.
class PricedArena {
 public:
  static constexpr uint64_t kUnits = 200;

  explicit PricedArena(base::Random& random) {
    std::vector<Allocation> all;
    while (const auto allocation = allocator_.Allocate(64 * (1 + random.Below(6)))) all.push_back(*allocation);
    for (const Allocation& a : all) {
      if (random.Chance(0.2)) {
        allocator_.Free(a);
        continue;
      }
      used_[a.offset] = a;
      if (!random.Chance(0.1)) prices_[a.block] = 1 + random.Below(50);
    }
  }

  Allocator& allocator() { return allocator_; }

  uint32_t AnyPricedBlock(base::Random& random) const {
    return std::next(prices_.begin(), static_cast<int64_t>(random.Below(prices_.size())))->first;
  }

  std::optional<uint64_t> Price(uint32_t block) const {
    const auto it = prices_.find(block);
    if (it == prices_.end()) return std::nullopt;
    return it->second;
  }

  using Bill = std::pair<uint64_t, uint64_t>;  // price, bytes in use

  // The cost of the cheapest run, by looking at all: from each unit on, as far as need be.
  std::optional<Bill> Cheapest(uint64_t size) const {
    std::optional<Bill> best;
    for (uint64_t begin = 0; begin < kUnits; ++begin) {
      Bill bill;
      uint64_t at = begin * 64;
      if (!used_.empty() && used_.upper_bound(at) != used_.begin()) {
        const Allocation& before = std::prev(used_.upper_bound(at))->second;
        if (before.offset < at && at < before.offset + before.size) continue;  // not the begin of a block
      }
      bool ok = true;
      while (ok && at < begin * 64 + size && at < kUnits * 64) {
        const auto it = used_.find(at);
        if (it == used_.end()) {
          at += 64;
          continue;
        }
        const std::optional<uint64_t> price = Price(it->second.block);
        ok = price.has_value();
        if (ok) bill = {std::max(bill.first, *price), bill.second + it->second.size};
        at += it->second.size;
      }
      if (ok && at >= begin * 64 + size && (!best.has_value() || bill < *best)) best = bill;
    }
    return best;
  }

  Bill BillOf(const BlockRun& run) const {
    Bill bill;
    for (const uint32_t block : run.used) {
      for (const auto& [offset, a] : used_) {
        if (a.block == block) bill = {std::max(bill.first, Price(block).value()), bill.second + a.size};
      }
    }
    return bill;
  }

  // Frees a run and allocates there: what was asked for lies in what was freed, or next to it.
  void Use(const BlockRun& run, uint64_t size) {
    for (const uint32_t block : run.used) {
      const auto it =
          std::find_if(used_.begin(), used_.end(), [&](const auto& entry) { return entry.second.block == block; });
      ASSERT_NE(it, used_.end());
      allocator_.Free(it->second);
      used_.erase(it);
    }
    const Allocation taken = allocator_.AllocateRun(run, size);
    ASSERT_GE(taken.size, size);
    const auto next = used_.lower_bound(taken.offset);
    ASSERT_TRUE(next == used_.end() || taken.offset + taken.size <= next->first);
    ASSERT_EQ(allocator_.CheckConsistency(), absl::OkStatus());
  }

 private:
  Allocator allocator_{kUnits * 64};
  std::map<uint64_t, Allocation> used_;  // by offset
  std::map<uint32_t, uint64_t> prices_;  // by block
};

TEST(AllocatorTest, TheRunFoundIsTheCheapest) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    PricedArena arena(random);
    const uint64_t size = 64 * (1 + random.Below(60));
    const std::optional<BlockRun> run =
        arena.allocator().FindRun(size, [&](uint32_t block) { return arena.Price(block); });
    const std::optional<PricedArena::Bill> best = arena.Cheapest(size);
    ASSERT_EQ(run.has_value(), best.has_value());
    if (!run.has_value()) continue;
    ++found;
    ASSERT_EQ(arena.BillOf(*run), *best);
    ASSERT_NO_FATAL_FAILURE(arena.Use(*run, size));
  }
  EXPECT_GT(found, 100);
  EXPECT_LT(found, 300);
}

TEST(AllocatorTest, AGrownRunIsAroundItsBlockAndNoDearerThanAllowed) {
  int grown = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    PricedArena arena(random);
    const uint64_t size = 64 * (1 + random.Below(20));
    const uint32_t block = arena.AnyPricedBlock(random);
    const uint64_t dearest = std::max<uint64_t>(30, *arena.Price(block));
    const std::optional<BlockRun> run =
        arena.allocator().GrowRun(block, size, dearest, [&](uint32_t other) { return arena.Price(other); });
    if (!run.has_value()) continue;
    ++grown;
    ASSERT_LE(arena.BillOf(*run).first, dearest);
    ASSERT_NO_FATAL_FAILURE(arena.Use(*run, size));
  }
  EXPECT_GT(grown, 30);
}

TEST(AllocatorTest, ASweepGoesOnWhereTheLastOneEndedAndBeginsAgainAtTheEnd) {
  Allocator allocator(6 * 64);
  std::vector<Allocation> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(*allocator.Allocate(64));
  const auto price = [&](uint32_t block) { return std::make_optional<uint64_t>(block == blocks[1].block ? 9 : 1); };
  const auto sweep = [&](uint64_t size) -> uint64_t {
    const std::optional<BlockRun> run = allocator.SweepRun(size, 5, price);
    if (!run.has_value()) return UINT64_MAX;
    return std::find_if(blocks.begin(), blocks.end(), [&](const Allocation& a) { return a.block == run->used[0]; })
        ->offset;
  };
  EXPECT_EQ(sweep(64), 0u);
  EXPECT_EQ(sweep(64), 2 * 64u) << "over the one that is too dear";
  EXPECT_EQ(sweep(128), 3 * 64u);
  EXPECT_EQ(sweep(128), 2 * 64u) << "no run goes over the end of the arena";
  EXPECT_EQ(sweep(5 * 64), UINT64_MAX);
}

TEST(AllocatorTest, ASweepLooksAtABoundedPartOfTheArena) {
  Allocator allocator(100'000 * 64);
  while (allocator.Allocate(64).has_value()) {
  }
  int looks = 0;
  const auto stays = [&](uint32_t) {
    ++looks;
    return std::optional<uint64_t>();
  };
  EXPECT_FALSE(allocator.SweepRun(64, 5, stays).has_value());
  EXPECT_EQ(looks, 4096);
}

TEST(AllocatorTest, ASweepIsNotLostAsBlocksMergeAndSplit) {
  base::Random random(7);
  Allocator allocator(1000 * 64);
  std::map<uint32_t, Allocation> used;
  for (int step = 0; step < 5000; ++step) {
    const uint64_t size = 64 * (1 + random.Below(8));
    std::optional<Allocation> allocation = allocator.Allocate(size);
    if (!allocation.has_value()) {
      const auto price = [&](uint32_t) { return std::make_optional<uint64_t>(1 + random.Below(10)); };
      const std::optional<BlockRun> run = allocator.SweepRun(size, 7, price);
      if (run.has_value()) {
        for (const uint32_t block : run->used) {
          allocator.Free(used.at(block));
          used.erase(block);
        }
        allocation = allocator.AllocateRun(*run, size);
      }
    }
    if (allocation.has_value()) used[allocation->block] = *allocation;
    if (step % 100 == 0) {
      ASSERT_EQ(allocator.CheckConsistency(), absl::OkStatus());
    }
  }
  EXPECT_GT(used.size(), 100u);
}

TEST(AllocatorTest, NoRunGoesOverABlockThatStays) {
  Allocator allocator(5 * 64);
  std::vector<Allocation> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(*allocator.Allocate(64));
  const auto price = [&](uint32_t block) {
    return block == blocks[2].block ? std::nullopt : std::make_optional(uint64_t{1});
  };
  EXPECT_FALSE(allocator.FindRun(3 * 64, price).has_value());
  EXPECT_FALSE(allocator.GrowRun(blocks[0].block, 3 * 64, 1, price).has_value());
  EXPECT_EQ(allocator.FindRun(2 * 64, price)->used.size(), 2u);
}

}  // namespace
}  // namespace tokamak::store
