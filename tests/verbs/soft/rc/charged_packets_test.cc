// A queue pair's part of the budget of packets.
#include "lib/verbs/soft/rc/charged_packets.h"

#include "gtest/gtest.h"

namespace tokamak::verbs::soft {
namespace {

class ChargedPacketsTest : public ::testing::Test {
 protected:
  ChargedPacketsTest() { budget_.set_window(3); }

  SendBudget budget_;
  ChargedPackets one_{budget_};
  ChargedPackets other_{budget_};
};

TEST_F(ChargedPacketsTest, AllShareOneBudget) {
  EXPECT_TRUE(one_.Take());
  EXPECT_TRUE(one_.Take());
  EXPECT_TRUE(other_.Take());
  EXPECT_FALSE(other_.Take());
  one_.GiveBack(1);
  EXPECT_TRUE(other_.Take());
}

TEST_F(ChargedPacketsTest, InAStallOnlyOneWithNothingOutMayTakeMore) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(one_.Take());
  EXPECT_FALSE(other_.Take());
  budget_.Stall();
  EXPECT_FALSE(one_.Take());
  EXPECT_TRUE(other_.Take());
  EXPECT_FALSE(other_.Take());
}

TEST_F(ChargedPacketsTest, NoPacketIsGivenBackTwice) {
  EXPECT_TRUE(one_.Take());
  EXPECT_TRUE(other_.Take());
  one_.Clear();
  EXPECT_TRUE(one_.empty());
  one_.GiveBack(5);  // acknowledged late
  EXPECT_EQ(budget_.given_back(), 1u);
}

}  // namespace
}  // namespace tokamak::verbs::soft
