#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "lib/verbs/ibv/posting/shared_slots.h"
#include "lib/verbs/ibv/posting/work_ring.h"

namespace tokamak::verbs::ibv {
namespace {

uint64_t Post(WorkRing& ring, uint64_t id) {
  const uint64_t position = ring.Note(0, id);
  ring.Commit(1);
  return position;
}

TEST(WorkRingTest, ARingTakesExactlyItsDepth) {
  WorkRing ring(5);
  for (uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(ring.room(), 5 - i);
    Post(ring, i);
  }
  EXPECT_EQ(ring.room(), 0u);
}

TEST(WorkRingTest, ACompletionFreesEarlierRequests) {
  WorkRing ring(5);
  for (uint64_t i = 0; i < 5; ++i) Post(ring, 100 + i);
  EXPECT_EQ(ring.id(3), 103u);
  ring.Release(3);
  EXPECT_EQ(ring.room(), 4u);
  EXPECT_FALSE(ring.Holds(2));
  EXPECT_TRUE(ring.Holds(4));
  EXPECT_FALSE(ring.Holds(5));
}

TEST(WorkRingTest, IdsStayThroughManyRounds) {
  WorkRing ring(6);  // not a power of two
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t position = Post(ring, i * i);
    ASSERT_EQ(ring.id(position), i * i);
    if (i % 3 == 2) ring.Release(position);
  }
}

TEST(WorkRingTest, OnlyTheAcceptedPartOfABatchCounts) {
  WorkRing ring(4);
  EXPECT_EQ(ring.Note(0, 7), 0u);
  EXPECT_EQ(ring.Note(1, 8), 1u);
  ring.Commit(1);
  EXPECT_EQ(ring.room(), 3u);
  EXPECT_EQ(ring.Note(0, 9), 1u);
  EXPECT_EQ(ring.id(1), 9u);
}

TEST(WorkRingTest, EachSuccessKeepsItsReportedFields) {
  WorkRing ring(4);
  ring.Note(0, 1, Telling::kNothing);
  ring.Note(1, 2);
  ring.Note(2, 3, Telling::kRead);
  ring.Commit(3);
  EXPECT_EQ(ring.telling(0), Telling::kNothing);
  EXPECT_EQ(ring.telling(1), Telling::kAsIs);
  EXPECT_EQ(ring.telling(2), Telling::kRead);
  ring.Release(2);
  for (uint64_t i = 3; i < 7; ++i) EXPECT_EQ(ring.telling(Post(ring, i)), Telling::kAsIs);
}

TEST(WorkRingTest, AResetForgetsAllRequests) {
  WorkRing ring(4);
  const uint64_t position = Post(ring, 1);
  ring.Clear();
  EXPECT_EQ(ring.room(), 4u);
  EXPECT_FALSE(ring.Holds(position));
}

TEST(SharedSlotsTest, SharedSlotsTakeExactlyTheirDepth) {
  SharedSlots slots(3);
  uint32_t slot = 0;
  for (uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(slots.Take(i, &slot));
  EXPECT_FALSE(slots.Take(3, &slot));
}

TEST(SharedSlotsTest, ReceivesMayEndInAnyOrder) {
  SharedSlots slots(3);
  uint32_t at[3];
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(slots.Take(10 + i, &at[i]));
  EXPECT_EQ(slots.Release(at[1], 1), 11u);
  EXPECT_EQ(slots.Release(at[2], 1), 12u);
  EXPECT_EQ(slots.Release(at[0], 1), 10u);
}

TEST(SharedSlotsTest, ASlowReceiveDoesNotHoldUpOthers) {
  SharedSlots slots(3);
  slots.AddOwner(1);
  uint32_t slow = 0;
  ASSERT_TRUE(slots.Take(1, &slow));
  for (uint64_t i = 0; i < 100; ++i) {
    uint32_t slot = 0;
    ASSERT_TRUE(slots.Take(100 + i, &slot)) << "round " << i;
    EXPECT_EQ(slots.Release(slot, 1), 100 + i);
  }
  EXPECT_EQ(slots.Release(slow, 1), 1u);
}

TEST(SharedSlotsTest, ReceivesThatNeverEndAreBounded) {
  SharedSlots slots(3);
  slots.AddOwner(1);
  slots.AddOwner(2);
  uint32_t slot = 0;
  size_t taken = 0;
  // Every second one completes, the others never: 2 may still hold them.
  while (taken < 100 && slots.Take(taken, &slot)) {
    if (++taken % 2 == 0) slots.Release(slot, 1);
  }
  EXPECT_LT(taken, 100u);
}

// Queue pairs 1 and 2 draw from `slots`: 1 takes a receive, and 2 all that come after, which it
// finishes.
void FillBehindOneOf(SharedSlots& slots) {
  slots.AddOwner(1);
  slots.AddOwner(2);
  uint32_t slot = 0;
  ASSERT_TRUE(slots.Take(1, &slot));  // 1 takes it and is never heard of again
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(slots.Take(i, &slot));
    EXPECT_EQ(slots.Release(slot, 2), i);
  }
}

TEST(SharedSlotsTest, SlotsOfAGoneQueuePairAreFreeAgain) {
  SharedSlots slots(2);
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    FillBehindOneOf(slots);
    slots.RemoveOwner(1);
  }
}

// Queue pairs 1 and 2 drew from the slots: somebody took receive 7, and one of them finished 8.
class TwoOwnersTest : public testing::Test {
 protected:
  void FinishTheSecond(uint32_t owner) {
    slots_.AddOwner(1);
    slots_.AddOwner(2);
    uint32_t second = 0;
    ASSERT_TRUE(slots_.Take(7, &first_));
    ASSERT_TRUE(slots_.Take(8, &second));
    EXPECT_EQ(slots_.Release(second, owner), 8u);
  }

  SharedSlots slots_{2};
  uint32_t first_ = 0;
};

TEST_F(TwoOwnersTest, SlotsThatALivingQueuePairMayHoldAreKept) {
  FinishTheSecond(2);
  slots_.RemoveOwner(2);
  uint32_t slot = 0;
  for (uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(slots_.Take(100 + i, &slot)) << i;
  EXPECT_EQ(slots_.Release(first_, 1), 7u);
}

// It finishes what it took in order, so what was before its latest was another's.
TEST_F(TwoOwnersTest, SlotsThatALivingQueuePairHasPassedAreFree) {
  FinishTheSecond(1);
  slots_.RemoveOwner(2);
  EXPECT_FALSE(slots_.Release(first_, 1).has_value()) << "2 took it with it";
}

TEST_F(TwoOwnersTest, AResetQueuePairHoldsNothing) {
  FinishTheSecond(2);
  slots_.AddOwner(1);
  slots_.RemoveOwner(2);
  EXPECT_FALSE(slots_.Release(first_, 1).has_value());
}

TEST(SharedSlotsTest, SlotsThatMayBeQueuedYetAreKept) {
  SharedSlots slots(1);
  slots.AddOwner(1);
  slots.AddOwner(2);
  uint32_t slot = 0;
  ASSERT_TRUE(slots.Take(1, &slot));
  slots.RemoveOwner(2);
  EXPECT_FALSE(slots.Take(2, &slot));
}

TEST(SharedSlotsTest, SlotsThatTheDeviceRefusedAreTakenBack) {
  SharedSlots slots(2);
  uint32_t first = 0, second = 0;
  ASSERT_TRUE(slots.Take(1, &first));
  ASSERT_TRUE(slots.Take(2, &second));
  slots.Back(second);
  ASSERT_TRUE(slots.Take(3, &second));
  EXPECT_EQ(slots.Release(first, 1), 1u);
  EXPECT_EQ(slots.Release(second, 1), 3u);
}

}  // namespace
}  // namespace tokamak::verbs::ibv
