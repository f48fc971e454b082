// Combinations of values.
#include "sim/scenario/sweep.h"

#include "gtest/gtest.h"

namespace tokamak::sim {
namespace {

TEST(SweepTest, PointsAreAllCombinations) {
  const auto points = SweepPoints({"a=1,2", "b=x,[0,3],{\"k\": [1,2]}"});
  ASSERT_TRUE(points.ok()) << points.status();
  ASSERT_EQ(points->size(), 6u);
  EXPECT_EQ((*points)[0], (SweepPoint{"a=1", "b=x"}));
  EXPECT_EQ((*points)[1], (SweepPoint{"a=1", "b=[0,3]"}));
  EXPECT_EQ((*points)[5], (SweepPoint{"a=2", "b={\"k\": [1,2]}"}));
}

TEST(SweepTest, RefusesMalformedAssignments) {
  EXPECT_FALSE(SweepPoints({"a"}).ok());
  EXPECT_FALSE(SweepPoints({"a="}).ok());
  EXPECT_FALSE(SweepPoints({"=1"}).ok());
}

}  // namespace
}  // namespace tokamak::sim
