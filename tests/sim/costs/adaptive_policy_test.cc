// The adaptive policy learns the threshold of the closed form: pulls between two hosts at one
// switch, before and after their costs have changed.
#include "lib/transport/policy/adaptive_policy.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "sim/costs/closed_form.h"
#include "sim/costs/presets.h"
#include "tests/sim/costs/pull_rig.h"

namespace tokamak::sim {
namespace {

using transport::Protocol;

constexpr double kStep = 1.005;

// The least size at which eager is not the fastest.
double ComputedThreshold(const HostCosts& costs, const PullPath& path, double least, double most) {
  for (double size = least; size < most; size *= kStep) {
    const auto bytes = static_cast<uint64_t>(size);
    const base::Duration other =
        std::min(PullTime(PullBy::kRead, bytes, costs, path), PullTime(PullBy::kWrite, bytes, costs, path));
    if (other < PullTime(PullBy::kEager, bytes, costs, path)) return size;
  }
  return most;
}

struct Case {
  const char* preset;
  uint32_t slot_size;  // above the threshold: where an object needs one more message, times jump
  uint64_t changed;    // what copies have in the end, bytes per second
  double least, most;  // sizes
};

class AdaptivePullsTest : public testing::TestWithParam<Case> {
 protected:
  static PullRigOptions Options() {
    PullRigOptions options;
    options.costs = ShippedPresets().at(GetParam().preset);
    options.endpoint.slot_size = GetParam().slot_size;
    options.endpoint.adaptive_policy = true;
    options.pause = base::Milliseconds(1);  // queue pairs for bulk that are idle for long are given back
    return options;
  }

  // Sizes evenly on a logarithmic scale.
  void Pull(int count) {
    for (int i = 0; i < count; ++i) {
      const double size = GetParam().least * std::pow(GetParam().most / GetParam().least, random_.Fraction());
      rig_.TimeOf(Protocol::kAuto, static_cast<uint64_t>(size));
      ASSERT_LE(rig_.counters().adaptive_explored * transport::kPullsForOne, rig_.counters().adaptive_pulls);
    }
  }

  // Below it most pulls go eagerly, above it most do not. One that explores is no answer, so each
  // size is asked three times.
  double LearnedThreshold() {
    double low = GetParam().least, high = GetParam().most;
    while (high > low * 1.01) {
      const double middle = std::sqrt(low * high);
      int eager = 0;
      for (int i = 0; i < 3; ++i) {
        rig_.TimeOf(Protocol::kAuto, static_cast<uint64_t>(middle));
        if (rig_.moved_by() == Protocol::kEager) ++eager;
      }
      (eager >= 2 ? low : high) = middle;
    }
    return low;
  }

  double Computed(uint64_t copy_bandwidth) const {
    HostCosts costs = options_.costs;
    costs.copy_bandwidth = copy_bandwidth;
    PullPath path;
    path.slot_size = GetParam().slot_size;
    return ComputedThreshold(costs, path, GetParam().least, GetParam().most);
  }

  const PullRigOptions options_ = Options();
  PullRig rig_{options_};
  base::Random random_{1};
};

TEST_P(AdaptivePullsTest, TheThresholdIsThatOfTheClosedFormBeforeAndAfterCostsChange) {
  const double before = Computed(options_.costs.copy_bandwidth);
  const double after = Computed(GetParam().changed);
  ASSERT_TRUE(std::max(before, after) > 1.5 * std::min(before, after)) << before << ", " << after;

  Pull(5000);
  EXPECT_NEAR(LearnedThreshold(), before, before / 10);

  rig_.SetCopyBandwidth(GetParam().changed);
  Pull(14'000);
  EXPECT_NEAR(LearnedThreshold(), after, after / 10);

  const transport::EndpointCounters& counters = rig_.counters();
  EXPECT_GT(counters.adaptive_explored, 50u);
  EXPECT_LE(counters.adaptive_explored_nanoseconds * transport::kTimeForOne,
            counters.adaptive_nanoseconds + 100'000 * transport::kTimeForOne)
      << "but for what the last one took longer than was expected";
  EXPECT_EQ(counters.downgrades, 0u) << "the owner's table would have some of them go eagerly";
}

INSTANTIATE_TEST_SUITE_P(All, AdaptivePullsTest,
                         testing::Values(Case{"softroce", 128 << 10, 3'000'000'000, 8000, 80'000},
                                         Case{"cx6-200g", 16 << 10, 28'000'000'000, 400, 6400}),
                         [](const auto& one) {
                           return std::string(one.param.preset[0] == 's' ? "softroce" : "cx6") +
                                  std::to_string(one.param.changed / 1'000'000'000);
                         });

}  // namespace
}  // namespace tokamak::sim
