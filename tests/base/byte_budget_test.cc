#include "lib/base/byte_budget.h"

#include <utility>

#include "gtest/gtest.h"

namespace tokamak::base {
namespace {

TEST(ByteBudgetTest, ClaimsTogetherStayWithinTheBudget) {
  ByteBudget budget(100);
  ByteClaim first(&budget), second(&budget);
  EXPECT_TRUE(first.Resize(60));
  EXPECT_FALSE(second.Resize(41));
  EXPECT_EQ(second.bytes(), 0u);
  EXPECT_TRUE(second.Resize(40));
  EXPECT_EQ(budget.used(), 100u);
  EXPECT_TRUE(first.Resize(10));
  EXPECT_TRUE(second.Resize(90)) << "what one gave back is there for the other";
}

TEST(ByteBudgetTest, APartCountsInItsWhole) {
  ByteBudget user(100);
  ByteBudget one(80, &user), other(80, &user);
  ByteClaim of_one(&one), of_other(&other);
  EXPECT_TRUE(of_one.Resize(80));
  EXPECT_FALSE(of_other.Resize(21));
  EXPECT_TRUE(other.tight()) << "the whole is";
  EXPECT_TRUE(of_other.Resize(20));
  of_one = ByteClaim();
  EXPECT_EQ(user.used(), 20u);
  EXPECT_FALSE(other.tight());
}

TEST(ByteBudgetTest, AClaimThatIsDroppedOrMovedGivesBackOnce) {
  ByteBudget budget(100);
  {
    ByteClaim claim(&budget);
    ASSERT_TRUE(claim.Resize(50));
    const ByteClaim moved = std::move(claim);
    EXPECT_EQ(budget.used(), 50u);
    EXPECT_EQ(moved.bytes(), 50u);
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(ByteBudgetTest, WithoutABudgetNothingIsRefused) {
  ByteClaim claim;
  EXPECT_TRUE(claim.Resize(UINT64_MAX));
  EXPECT_FALSE(claim.tight());
}

}  // namespace
}  // namespace tokamak::base
