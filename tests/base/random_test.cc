#include "lib/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace tokamak::base {
namespace {

TEST(RandomTest, IsTheSameOnEveryMachine) {
  // xoshiro256** over a SplitMix64 state, computed independently.
  Random random(42);
  EXPECT_EQ(random.Next(), 0x15780b2e0c2ec716u);
  EXPECT_EQ(random.Next(), 0x6104d9866d113a7eu);
  EXPECT_EQ(random.Next(), 0xae17533239e499a1u);
}

TEST(RandomTest, EqualSeedsGiveEqualStreamsAndOthersDiffer) {
  Random a(7), b(7), c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t value = a.Next();
    EXPECT_EQ(value, b.Next());
    differs |= value != c.Next();
  }
  EXPECT_TRUE(differs);
}

TEST(RandomTest, BelowStaysBelowAndReachesAll) {
  Random random(1);
  std::array<int, 6> seen{};
  for (int i = 0; i < 6000; ++i) ++seen.at(random.Below(6));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.Below(1), 0u);
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.Below((uint64_t{1} << 63) + 1), (uint64_t{1} << 63) + 1);
}

TEST(RandomTest, BelowZeroIsACheck) { EXPECT_DEATH(Random(1).Below(0), ""); }

TEST(RandomTest, FractionIsAtLeastZeroAndLessThanOne) {
  Random random(3);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double fraction = random.Fraction();
    ASSERT_GE(fraction, 0.0);
    ASSERT_LT(fraction, 1.0);
    sum += fraction;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(RandomTest, ChanceOfZeroIsNeverAndOfOneAlways) {
  Random random(4);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(random.Chance(0));
    EXPECT_TRUE(random.Chance(1));
    hits += random.Chance(0.1);
  }
  EXPECT_NEAR(hits, 1000, 150);
}

TEST(RandomTest, AForkDependsOnSeedAndNameOnly) {
  Random random(5);
  const uint64_t first = random.Fork(1).Next();
  Random undisturbed(5);
  EXPECT_EQ(random.Next(), undisturbed.Next());
  EXPECT_EQ(random.Fork(1).Next(), first);
}

TEST(RandomTest, ForksDifferFromEachOtherAndFromTheirForks) {
  const Random random(6);
  std::set<uint64_t> firsts;
  for (uint64_t i = 0; i < 1000; ++i) {
    firsts.insert(random.Fork(i).Next());
    firsts.insert(random.Fork(i).Fork(i).Next());
  }
  firsts.insert(Random(6).Next());
  EXPECT_EQ(firsts.size(), 2001u);
}

}  // namespace
}  // namespace tokamak::base
