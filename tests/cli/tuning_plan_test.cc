// Which pulls tok tune measures, and when it knows enough; pulls are formulas here.
#include "lib/cli/tune/tuning_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::cli::tune {
namespace {

using transport::Protocol;

// Eager up to 40,000 bytes, write above.
double TimeOf(const Probe& probe) {
  const auto size = static_cast<double>(probe.size);
  if (probe.protocol == Protocol::kEager) return 10e-6 + 1e-9 * size;
  return (probe.protocol == Protocol::kWrite ? 30e-6 : 45e-6) + 0.5e-9 * size;
}

class TuningPlanTest : public testing::Test {
 protected:
  size_t Round(double noise) {
    const std::vector<Probe> round = plan_.NextRound();
    for (const Probe& probe : round) {
      plan_.Note(probe, TimeOf(probe) * (1 + noise * (random_.Fraction() + random_.Fraction() - 1)));
    }
    return round.size();
  }

  TuningPlan plan_{1024, 16 << 20, base::Random(1)};
  base::Random random_{2};
};

TEST_F(TuningPlanTest, ARoundHasEverySizeByEveryProtocolInRandomOrder) {
  const std::vector<Probe> round = plan_.NextRound();
  ASSERT_EQ(round.size(), 3u * 15);
  std::set<std::pair<uint64_t, Protocol>> different;
  for (const Probe& probe : round) different.emplace(probe.size, probe.protocol);
  EXPECT_EQ(different.size(), round.size());
  EXPECT_EQ(different.begin()->first, 1024u);
  EXPECT_EQ(different.rbegin()->first, uint64_t{16} << 20);
  EXPECT_FALSE(
      std::is_sorted(round.begin(), round.end(), [](const Probe& a, const Probe& b) { return a.size < b.size; }));
}

TEST_F(TuningPlanTest, ThereIsNoTableBeforeTheFirstRounds) {
  for (size_t i = 0; i < kFullRounds; ++i) {
    EXPECT_FALSE(plan_.has_table());
    EXPECT_TRUE(plan_.times().empty());
    Round(0);
  }
  ASSERT_TRUE(plan_.has_table());
  EXPECT_EQ(plan_.times().size(), 15u);
  EXPECT_EQ(plan_.samples(), kFullRounds * 45);
}

TEST_F(TuningPlanTest, ACrossoverWithoutNoiseIsKnownAtOnce) {
  for (size_t i = 0; i < kFullRounds; ++i) Round(0);
  const transport::PolicyFit fit = plan_.Fit();
  ASSERT_EQ(fit.crossovers.size(), 1u);
  EXPECT_TRUE(TuningPlan::IsKnown(fit));
  EXPECT_NEAR(static_cast<double>(fit.crossovers[0].size), 40'000, 10);
}

TEST_F(TuningPlanTest, NoiseIsMeasuredAwayAroundTheCrossover) {
  int rounds = 0;
  while (rounds < 200 && !(plan_.has_table() && TuningPlan::IsKnown(plan_.Fit()))) {
    Round(0.2);
    ++rounds;
  }
  const transport::PolicyFit fit = plan_.Fit();
  ASSERT_EQ(fit.crossovers.size(), 1u);
  EXPECT_TRUE(TuningPlan::IsKnown(fit));
  EXPECT_GT(rounds, static_cast<int>(kFullRounds));
  EXPECT_NEAR(static_cast<double>(fit.crossovers[0].size), 40'000, 10'000);
  EXPECT_LE(fit.crossovers[0].least, 44'000u);
  EXPECT_GE(fit.crossovers[0].most, 36'000u);
  // Sizes near it were pulled more often than others, and there are more of them.
  std::map<bool, std::pair<size_t, size_t>> pulls;  // near or not: sizes, pulls
  for (const transport::SizeTimes& times : plan_.times()) {
    auto& count = pulls[times.size > 10'000 && times.size < 160'000];
    ++count.first;
    count.second += times.seconds[0].size();
  }
  EXPECT_GT(pulls[true].second * pulls[false].first, pulls[false].second * pulls[true].first);
  EXPECT_GT(plan_.times().size(), 15u);
}

TEST_F(TuningPlanTest, ATableIsUnknownWhileItsMediansAre) {
  for (size_t i = 0; i < kFullRounds; ++i) Round(1);
  EXPECT_GT(plan_.Fit().error, kKnownError);
  EXPECT_FALSE(TuningPlan::IsKnown(plan_.Fit()));
}

TEST_F(TuningPlanTest, ItsMemoryIsBounded) {
  TuningPlan plan(1024, 4096, base::Random(1));
  for (size_t i = 0; i < kMaxSamples * 4 / 3 + 20; ++i) {
    for (const Probe& probe : plan.NextRound()) plan.Note(probe, TimeOf(probe) * (1 + random_.Fraction()));
  }
  EXPECT_LE(plan.times().size(), kMaxSizes);
  for (const transport::SizeTimes& times : plan.times()) {
    for (const auto& samples : times.seconds) EXPECT_EQ(samples.size(), kMaxSamples);
  }
  EXPECT_TRUE(plan.NextRound().empty()) << "there is nothing left to learn";
}

TEST(OneSizeTest, OneSizeGivesATableOfOneStep) {
  TuningPlan plan(1024, 1500, base::Random(1));
  for (size_t i = 0; i < kFullRounds; ++i) {
    for (const Probe& probe : plan.NextRound()) plan.Note(probe, TimeOf(probe));
  }
  const transport::PolicyFit fit = plan.Fit();
  ASSERT_EQ(fit.steps.size(), 1u);
  EXPECT_EQ(fit.steps[0].protocol, Protocol::kEager);
  EXPECT_TRUE(TuningPlan::IsKnown(fit));
}

}  // namespace
}  // namespace tokamak::cli::tune
