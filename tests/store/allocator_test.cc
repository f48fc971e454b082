#include "lib/store/allocator.h"

#include <cstdint>
#include <map>
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

TEST(AllocatorDeathTest, FreeingWhatWasNeverGivenOutIsACheck) {
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

}  // namespace
}  // namespace tokamak::store
