// The table that comes of measured times, where what was measured is known: formulas with noise.
#include "lib/transport/policy/policy_fit.h"

#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::transport {
namespace {

struct Line {
  double start, each;  // seconds, and for each byte
  double operator()(double size) const { return start + each * size; }
};
using Lines = std::array<Line, 3>;  // eager, read, write

// Eager up to 40,000 bytes, read above; write is a tenth slower than read.
constexpr Lines kTwoSteps = {{{10e-6, 1e-9}, {30e-6, 0.5e-9}, {33e-6, 0.55e-9}}};

// Sizes from 1 KiB to 16 MiB, each twice the one before.
std::vector<SizeTimes> Measure(const Lines& lines, int samples, double noise, uint64_t seed, double outliers = 0.05) {
  base::Random random(seed);
  std::vector<SizeTimes> times;
  for (int i = 0; i < 15; ++i) {
    SizeTimes one;
    one.size = uint64_t{1024} << i;
    for (size_t p = 0; p < lines.size(); ++p) {
      for (int k = 0; k < samples; ++k) {
        const double spread = 1 + noise * (random.Fraction() + random.Fraction() + random.Fraction() - 1.5);
        const double late = noise > 0 && random.Chance(outliers) ? 1 + 10 * random.Fraction() : 1;
        one.seconds[p].push_back(lines[p](static_cast<double>(one.size)) * spread * late);
      }
    }
    times.push_back(one);
  }
  return times;
}

std::string TextOf(const PolicyFit& fit) { return Policy::FromSteps(fit.steps)->ToString(); }

TEST(MedianTest, IsTheOneInTheMiddle) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 100, 2}), 3);
}

TEST(PolicyFitTest, WithoutNoiseTheCrossoverIsExact) {
  const PolicyFit fit = FitPolicy(Measure(kTwoSteps, 3, 0, 1), base::Random(1));
  ASSERT_EQ(fit.crossovers.size(), 1u);
  const Crossover& crossover = fit.crossovers[0];
  EXPECT_EQ(crossover.below, Protocol::kEager);
  EXPECT_EQ(crossover.above, Protocol::kRead);
  EXPECT_NEAR(static_cast<double>(crossover.size), 40'000, 1);
  EXPECT_EQ(crossover.least, crossover.size);
  EXPECT_EQ(crossover.most, crossover.size);
  EXPECT_NEAR(crossover.loss, 0, 1e-6);
  ASSERT_EQ(fit.steps.size(), 2u);
  EXPECT_EQ(fit.steps[0].size_at_most, crossover.size);
  EXPECT_EQ(fit.steps[1].size_at_most, UINT64_MAX);
  EXPECT_EQ(fit.steps[1].protocol, Protocol::kRead);
}

TEST(PolicyFitTest, ThreeStepsAreFound) {
  // Eager to 10,000, write to 1,000,000, read above.
  const Lines lines = {{{10e-6, 2e-9}, {120e-6, 0.9e-9}, {20e-6, 1e-9}}};
  const PolicyFit fit = FitPolicy(Measure(lines, 30, 0.2, 3), base::Random(1));
  ASSERT_EQ(fit.crossovers.size(), 2u) << TextOf(fit);
  EXPECT_EQ(fit.crossovers[0].above, Protocol::kWrite);
  EXPECT_EQ(fit.crossovers[1].above, Protocol::kRead);
  EXPECT_NEAR(static_cast<double>(fit.crossovers[0].size), 10'000, 2500);
  EXPECT_LE(fit.crossovers[1].least, 1'000'000u);
  EXPECT_GE(fit.crossovers[1].most, 1'000'000u);
}

TEST(PolicyFitTest, AProtocolThatIsAlwaysFastestIsTheWholeTable) {
  const Lines lines = {{{10e-6, 1e-9}, {9e-6, 0.5e-9}, {8e-6, 0.4e-9}}};
  const PolicyFit fit = FitPolicy(Measure(lines, 20, 0.2, 1), base::Random(1));
  EXPECT_EQ(TextOf(fit), "write");
  EXPECT_TRUE(fit.crossovers.empty());
}

TEST(PolicyFitTest, EquallyFastProtocolsMakeNoSteps) {
  const Lines lines = {{{10e-6, 1e-9}, {10e-6, 1e-9}, {10e-6, 1e-9}}};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(FitPolicy(Measure(lines, 15, 0.1, seed), base::Random(1)).steps.size(), 1u) << "seed " << seed;
  }
}

// Some pulls take ten times as long.
TEST(PolicyFitTest, NoiseAndLatePullsMoveItLittleAndTheIntervalHoldsIt) {
  int held = 0;
  constexpr int kRuns = 60;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    const PolicyFit fit = FitPolicy(Measure(kTwoSteps, 25, 0.3, seed), base::Random(seed));
    ASSERT_GE(fit.crossovers.size(), 1u) << "seed " << seed;
    const Crossover& crossover = fit.crossovers[0];
    EXPECT_EQ(crossover.below, Protocol::kEager);
    EXPECT_NEAR(static_cast<double>(crossover.size), 40'000, 20'000) << "seed " << seed;
    EXPECT_LE(crossover.least, crossover.size);
    EXPECT_GE(crossover.most, crossover.size);
    if (crossover.least <= 40'000 && crossover.most >= 40'000) ++held;
  }
  EXPECT_GE(held, kRuns * 85 / 100);
}

TEST(PolicyFitTest, MoreSamplesNarrowTheInterval) {
  const auto width = [](int samples) {
    double sum = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const PolicyFit fit = FitPolicy(Measure(kTwoSteps, samples, 0.3, seed), base::Random(seed));
      sum += static_cast<double>(fit.crossovers[0].most) / static_cast<double>(fit.crossovers[0].least);
    }
    return sum / 10;
  };
  EXPECT_LT(width(200), width(10));
}

TEST(PolicyFitTest, TheLossIsTheCostOfTheWrongProtocol) {
  // Nearly parallel: the crossover is not known well, and matters little.
  const Lines lines = {{{10e-6, 1e-9}, {10.2e-6, 0.98e-9}, {50e-6, 2e-9}}};
  const PolicyFit fit = FitPolicy(Measure(lines, 20, 0.1, 1), base::Random(1));
  for (const Crossover& crossover : fit.crossovers) EXPECT_LT(crossover.loss, 0.1);
}

// Eager gains a tenth at small sizes: whether that is worth a change, noise decides.
TEST(PolicyFitTest, TheIntervalOfADoubtfulStepReachesTheEnd) {
  const Lines lines = {{{10e-6, 0.3e-9}, {50e-6, 2e-9}, {11.5e-6, 0.2e-9}}};
  int found = 0, doubtful = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const PolicyFit fit = FitPolicy(Measure(lines, 25, 0.3, seed), base::Random(seed));
    if (fit.crossovers.empty()) continue;
    ++found;
    if (fit.crossovers[0].least == 1024) ++doubtful;
  }
  EXPECT_GT(found, 0);
  EXPECT_LT(found, 40);
  EXPECT_GE(doubtful, found * 85 / 100) << "of " << found;
}

TEST(PolicyFitTest, AProtocolThatWasNotMeasuredIsNotChosen) {
  std::vector<SizeTimes> times = Measure(kTwoSteps, 5, 0, 1);
  for (SizeTimes& one : times) one.seconds[1].clear();
  const PolicyFit fit = FitPolicy(times, base::Random(1));
  ASSERT_EQ(fit.crossovers.size(), 1u);
  EXPECT_EQ(fit.crossovers[0].above, Protocol::kWrite);
}

TEST(PolicyFitTest, OneSizeIsEnough) {
  std::vector<SizeTimes> times = Measure(kTwoSteps, 5, 0.1, 1);
  times.resize(1);
  EXPECT_EQ(TextOf(FitPolicy(times, base::Random(1))), "eager");
}

TEST(PolicyFitTest, TheSameSamplesGiveTheSameTable) {
  const std::vector<SizeTimes> times = Measure(kTwoSteps, 25, 0.3, 5);
  const PolicyFit a = FitPolicy(times, base::Random(9)), b = FitPolicy(times, base::Random(9));
  EXPECT_EQ(TextOf(a), TextOf(b));
  EXPECT_EQ(a.crossovers[0].least, b.crossovers[0].least);
}

}  // namespace
}  // namespace tokamak::transport
