// Places that parties share, and hold: nobody has the last ones.
#include "lib/base/fair_share.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::base {
namespace {

class FairShareTest : public testing::Test {
 protected:
  using Share = FairShare<std::string>;

  // How many more it gets, one after the other.
  int TakeAll(const std::string& party) {
    int taken = 0;
    for (; share_.MayTake(party); ++taken) claims_.push_back(share_.Take(party));
    return taken;
  }

  Share share_{8};
  std::vector<Share::Claim> claims_;
};

TEST_F(FairShareTest, AGreedyPartyGetsHalfAndTheNextHalfOfTheRest) {
  EXPECT_EQ(TakeAll("a"), 4);
  EXPECT_EQ(TakeAll("b"), 2);
  EXPECT_EQ(TakeAll("c"), 1);
  EXPECT_EQ(TakeAll("d"), 1) << "the last is anybody's who has none";
  EXPECT_TRUE(share_.full());
  EXPECT_EQ(TakeAll("e"), 0);
}

TEST_F(FairShareTest, ClaimingSeveralAtOnceGivesAsManyAsOneByOne) {
  EXPECT_TRUE(share_.MayTake("a", 4));
  EXPECT_FALSE(share_.MayTake("a", 5));
  EXPECT_FALSE(share_.MayTake("a", 1000));
  const Share::Claim three = share_.Take("a", 3);
  EXPECT_TRUE(share_.MayTake("a", 1));
  EXPECT_FALSE(share_.MayTake("a", 2));
  EXPECT_TRUE(share_.MayTake("b", 3));
  EXPECT_TRUE(share_.MayTake("b", 0));
}

TEST_F(FairShareTest, AReturnedClaimIsFreeAgain) {
  TakeAll("a");
  TakeAll("b");
  claims_.clear();
  EXPECT_EQ(share_.taken(), 0u);
  EXPECT_EQ(TakeAll("b"), 4);
}

TEST_F(FairShareTest, AMovedClaimIsReturnedOnce) {
  Share::Claim first = share_.Take("a", 3);
  Share::Claim second = std::move(first);
  EXPECT_EQ(share_.taken(), 3u);
  first = share_.Take("b");
  std::swap(first, second);
  EXPECT_EQ(share_.taken(), 4u);
  first = {};
  EXPECT_EQ(share_.taken(), 1u);
  const Share::Claim nothing = share_.Take("c", 0);
  EXPECT_EQ(share_.taken(), 1u);
}

}  // namespace
}  // namespace tokamak::base
