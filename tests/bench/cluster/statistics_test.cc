#include "tests/bench/cluster/statistics.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"

namespace tokamak::bench {
namespace {

// 1, 2, 3, ...: a value is its place.
std::vector<double> UpTo(size_t count) {
  std::vector<double> values;
  for (size_t i = 1; i <= count; ++i) values.push_back(static_cast<double>(i));
  return values;
}

TEST(StatisticsTest, TheIntervalOfAMedianFollowsTheBinomialDistribution) {
  const struct {
    size_t count;
    double low, high;
  } known[] = {{6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {10, 2, 9}, {20, 6, 15}, {50, 18, 33}, {100, 40, 61}};
  for (const auto& one : known) {
    const Interval interval = MedianInterval(UpTo(one.count));
    EXPECT_EQ(interval.low, one.low) << one.count;
    EXPECT_EQ(interval.high, one.high) << one.count;
  }
}

TEST(StatisticsTest, ManyValuesHaveAnIntervalToo) {
  // 2^-10000 is no double. By the normal distribution: 5000.5 - 1.96 * 50.
  const Interval interval = MedianInterval(UpTo(10'000));
  EXPECT_NEAR(interval.low, 4902, 2);
  EXPECT_EQ(interval.low + interval.high, 10'001);
}

TEST(StatisticsTest, TheMedianLiesWithinItsIntervalAsOftenAsPromised) {
  base::Random random(7);
  int within = 0;
  constexpr int kRuns = 4000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> values;
    for (int i = 0; i < 25; ++i) values.push_back(random.Fraction() * random.Fraction());  // skewed
    std::sort(values.begin(), values.end());
    const Interval interval = MedianInterval(values);
    constexpr double kMedian = 0.18668;  // of x where x - x ln x = 1/2
    within += interval.low <= kMedian && kMedian <= interval.high ? 1 : 0;
  }
  EXPECT_GE(within, kRuns * 95 / 100);
}

TEST(StatisticsTest, AQuantileLiesBetweenItsNeighboursInProportion) {
  EXPECT_EQ(Quantile({5}, 0.9), 5);
  EXPECT_EQ(Quantile({1, 2}, 0.5), 1.5);
  EXPECT_EQ(Quantile(UpTo(11), 0.1), 2);
  EXPECT_EQ(Quantile(UpTo(11), 1), 11);
}

class StopRuleTest : public ::testing::Test {
 protected:
  StopRuleTest() {
    rule.precision = 0.05;
    rule.least = 10;
    rule.most = 40;
    rule.seconds = 2;
  }
  StopRule rule;
};

TEST_F(StopRuleTest, EqualValuesSufficeAtTheLeastNumberOfRepetitions) {
  EXPECT_EQ(rule.Decide(std::vector<double>(9, 1.0), 0), Stop::kNotYet);
  EXPECT_EQ(rule.Decide(std::vector<double>(10, 1.0), 0), Stop::kPrecise);
}

TEST_F(StopRuleTest, TheIntervalIsComparedWithTheMedian) {
  // The interval of ten values leaves out one at each end.
  const std::vector<double> within = {50, 95.1, 100, 100, 100, 100, 100, 100, 104.9, 500};
  const std::vector<double> beyond = {50, 94.9, 100, 100, 100, 100, 100, 100, 105.1, 500};
  EXPECT_EQ(rule.Decide(within, 0), Stop::kPrecise);
  EXPECT_EQ(rule.Decide(beyond, 0), Stop::kNotYet);
}

TEST_F(StopRuleTest, TheOrderOfTheValuesDoesNotMatter) {
  const std::vector<double> values = {104.9, 100, 50, 100, 100, 95.1, 100, 100, 500, 100};
  EXPECT_EQ(rule.Decide(values, 0), Stop::kPrecise);
}

TEST_F(StopRuleTest, NoisyValuesGoOnUntilTheMaximumOfRepetitions) {
  std::vector<double> values;
  base::Random random(1);
  while (values.size() < rule.most) {
    EXPECT_EQ(rule.Decide(values, 0), Stop::kNotYet) << values.size();
    values.push_back(1 + 9 * random.Fraction());
  }
  EXPECT_EQ(rule.Decide(values, 0), Stop::kRepetitions);
}

TEST_F(StopRuleTest, TimeEndsACaseButNotBeforeItsFirstRepetition) {
  EXPECT_EQ(rule.Decide({}, 100), Stop::kNotYet);
  EXPECT_EQ(rule.Decide({1}, 1.9), Stop::kNotYet);
  EXPECT_EQ(rule.Decide({1}, 2), Stop::kTime);
}

TEST_F(StopRuleTest, FewRepetitionsAreNeverPrecise) {
  rule.least = 1;
  EXPECT_EQ(rule.Decide(std::vector<double>(5, 1.0), 0), Stop::kNotYet);
  EXPECT_EQ(rule.Decide(std::vector<double>(6, 1.0), 0), Stop::kPrecise);
}

}  // namespace
}  // namespace tokamak::bench
