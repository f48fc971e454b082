// Slots of one pool: all memory is registered in blocks, what is given back is used again, and
// blocks that nobody uses go.
#include "lib/transport/memory/slot_pool.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sim/time/sim_loop.h"

namespace tokamak::transport {
namespace {

// Registers what it is given, until it shall not any more.
class CountingDomain final : public verbs::ProtectionDomain {
 public:
  class Region final : public verbs::MemoryRegion {
   public:
    Region(CountingDomain& domain, absl::Span<uint8_t> memory, uint32_t key)
        : domain_(domain), memory_(memory), key_(key) {
      ++domain_.regions;
    }
    ~Region() override { --domain_.regions; }
    uint8_t* address() const override { return memory_.data(); }
    uint64_t length() const override { return memory_.size(); }
    uint32_t lkey() const override { return key_; }
    uint32_t rkey() const override { return key_; }

   private:
    CountingDomain& domain_;
    const absl::Span<uint8_t> memory_;
    const uint32_t key_;
  };

  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> RegisterMemory(absl::Span<uint8_t> memory,
                                                                      verbs::Access) override {
    ++asked;
    if (regions == most) return absl::ResourceExhaustedError("RLIMIT_MEMLOCK");
    return std::make_unique<Region>(*this, memory, ++last_key_);
  }
  absl::StatusOr<std::unique_ptr<verbs::MemoryWindow>> CreateMemoryWindow() override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::unique_ptr<verbs::QueuePair>> CreateQueuePair(const verbs::QueuePairOptions&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::unique_ptr<verbs::SharedReceiveQueue>> CreateSharedReceiveQueue(uint32_t, uint32_t) override {
    return absl::UnimplementedError("");
  }

  int asked = 0;
  int regions = 0;
  int most = 1000;

 private:
  uint32_t last_key_ = 0;
};

class SlotPoolTest : public ::testing::Test {
 protected:
  std::vector<uint32_t> Take(size_t count) {
    std::vector<uint32_t> slots;
    for (size_t i = 0; i < count; ++i) slots.push_back(*pool_.Take());
    return slots;
  }
  void Give(const std::vector<uint32_t>& slots) {
    for (const uint32_t slot : slots) pool_.Give(slot);
  }

  static constexpr uint32_t kSize = 512, kBlock = 16;
  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  CountingDomain domain_;
  SlotPool pool_{loop_, domain_, kSize, kBlock};
};

TEST_F(SlotPoolTest, NothingIsRegisteredBeforeTheFirstSlot) {
  EXPECT_EQ(domain_.regions, 0);
  Give(Take(1));
  EXPECT_EQ(domain_.regions, 1);
}

TEST_F(SlotPoolTest, ABlockIsOneRegionAndSlotsDoNotOverlap) {
  const std::vector<uint32_t> slots = Take(3 * kBlock);
  EXPECT_EQ(domain_.regions, 3);
  EXPECT_EQ(pool_.registered(), 3u * kBlock * kSize);
  std::vector<uint8_t*> begins;
  for (const uint32_t slot : slots) {
    begins.push_back(pool_.at(slot));
    EXPECT_EQ(pool_.Piece(slot, 8).lkey, slot / kBlock + 1);
  }
  std::sort(begins.begin(), begins.end());
  for (size_t i = 1; i < begins.size(); ++i) EXPECT_GE(begins[i] - begins[i - 1], ptrdiff_t{kSize});
  Give(slots);
}

TEST_F(SlotPoolTest, ReturnedSlotsAreTakenAgainFromTheLowestBlock) {
  const std::vector<uint32_t> slots = Take(2 * kBlock);
  pool_.Give(slots[kBlock + 1]);
  pool_.Give(slots[1]);
  EXPECT_EQ(*pool_.Take(), slots[1]);
  EXPECT_EQ(*pool_.Take(), slots[kBlock + 1]);
  EXPECT_EQ(domain_.regions, 2);
  Give(slots);
}

TEST_F(SlotPoolTest, OneUnusedBlockIsKept) {
  Give(Take(5 * kBlock));
  EXPECT_EQ(domain_.regions, 1);
  EXPECT_EQ(pool_.taken(), 0u);
  const std::vector<uint32_t> again = Take(2 * kBlock);
  EXPECT_EQ(domain_.regions, 2);
  EXPECT_EQ(std::set<uint32_t>(again.begin(), again.end()).size(), again.size());
  Give(again);
}

TEST_F(SlotPoolTest, AFailedRegistrationIsReportedWithItsReason) {
  domain_.most = 1;
  const std::vector<uint32_t> slots = Take(kBlock);
  EXPECT_TRUE(absl::IsResourceExhausted(pool_.Take().status()));
  pool_.Give(slots[3]);
  EXPECT_EQ(*pool_.Take(), slots[3]);
  Give(slots);
}

TEST_F(SlotPoolTest, AnOptionalBlockIsNotTriedAgainAtOnce) {
  domain_.most = 1;
  std::vector<uint32_t> slots = Take(kBlock);
  EXPECT_TRUE(absl::IsResourceExhausted(pool_.TakeSpare().status()));
  const int asked = domain_.asked;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(absl::IsResourceExhausted(pool_.TakeSpare().status()));
  EXPECT_EQ(domain_.asked, asked);
  EXPECT_FALSE(pool_.Take().ok());
  EXPECT_EQ(domain_.asked, asked + 1) << "what is needed is tried";
  pool_.Give(slots.back());
  slots.back() = *pool_.TakeSpare();  // it is there
  domain_.most = 2;
  EXPECT_FALSE(pool_.TakeSpare().ok());
  scheduler_.RunFor(SlotPool::kRegisterRest);
  slots.push_back(*pool_.TakeSpare());
  Give(slots);
}

TEST_F(SlotPoolTest, ABlockOfDefaultSlotsIsAHugePage) {
  EXPECT_EQ(SlotPool::BlockFor(16 * 1024) * 16 * 1024, 2u << 20);
  EXPECT_EQ(SlotPool::BlockFor(256 * 1024), 16u);
}

}  // namespace
}  // namespace tokamak::transport
