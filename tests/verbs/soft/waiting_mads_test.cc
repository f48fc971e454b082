// The connection manager's messages wait for the outbox, and stay as long as it points to them.
#include "lib/verbs/soft/waiting_mads.h"

#include <vector>

#include "gtest/gtest.h"

namespace tokamak::verbs::soft {
namespace {

class WaitingMadsTest : public ::testing::Test {
 protected:
  bool Add(uint8_t first_byte) {
    std::vector<uint8_t> mad(kMadSize);
    mad[0] = first_byte;
    return mads_.Add(*Address::Parse("10.0.0.2"), mad);
  }

  WaitingMads mads_{kPsnMask};
  Outbox outbox_{3};
};

TEST_F(WaitingMadsTest, TheyLeaveInOrderWithNumbersOfTheirOwn) {
  EXPECT_TRUE(Add(1));
  EXPECT_TRUE(Add(2));
  EXPECT_EQ(mads_.AddTo(outbox_), 2u);
  const auto packets = outbox_.waiting();
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[0].psn, kPsnMask);
  EXPECT_EQ(packets[1].psn, 0u) << "wraps";
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(packets[i].destination, kManagementQueuePair);
    EXPECT_EQ(packets[i].qkey, kManagementQkey);
    ASSERT_EQ(packets[i].payload_length(), kMadSize);
    EXPECT_EQ(packets[i].payload[0].data[0], i + 1);
  }
}

TEST_F(WaitingMadsTest, TheBytesOfThoseInTheOutboxStayWhileOthersCome) {
  for (uint8_t i = 0; i < 5; ++i) EXPECT_TRUE(Add(i));
  EXPECT_EQ(mads_.AddTo(outbox_), 3u) << "as many as have room";
  EXPECT_TRUE(mads_.any_left());
  for (uint8_t i = 5; i < 100; ++i) EXPECT_TRUE(Add(i));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(outbox_.waiting()[i].payload[0].data[0], i);
  outbox_.DropOwner(kManagementQueuePair);
  mads_.ForgetAdded();
  EXPECT_EQ(mads_.AddTo(outbox_), 3u);
  EXPECT_EQ(outbox_.waiting()[0].payload[0].data[0], 3);
}

TEST_F(WaitingMadsTest, AnythingBeyondTheBoundIsRefused) {
  for (size_t i = 0; i < kMaxMadsWaiting; ++i) ASSERT_TRUE(Add(0));
  EXPECT_FALSE(Add(0));
  EXPECT_EQ(mads_.AddTo(outbox_), 3u);
  outbox_.DropOwner(kManagementQueuePair);
  EXPECT_FALSE(Add(0)) << "not forgotten yet";
  mads_.ForgetAdded();
  EXPECT_TRUE(Add(0));
}

}  // namespace
}  // namespace tokamak::verbs::soft
