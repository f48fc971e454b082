// Which packets get the mark of congestion.
#include <cmath>

#include "sim/fabric/switch/ecn_marker.h"
#include "tests/sim/fabric/parts_fixture.h"

namespace tokamak::sim {
namespace {

TEST(EcnMarkerTest, MarksAlongTheCurve) {
  const EcnOptions options{100'000, 400'000, 0.2};
  EcnMarker marker(options, base::Random(1));
  constexpr int kTrials = 20'000;
  for (uint64_t queue = 0; queue <= 500'000; queue += 25'000) {
    double expected = 0;
    if (queue >= 400'000) {
      expected = 1;
    } else if (queue > 100'000) {
      expected = 0.2 * static_cast<double>(queue - 100'000) / 300'000;
    }
    EXPECT_DOUBLE_EQ(marker.Probability(queue), expected) << queue;
    int marked = 0;
    for (int i = 0; i < kTrials; ++i) marked += marker.Marks(queue);
    EXPECT_NEAR(marked, kTrials * expected, 5 * std::sqrt(kTrials * expected * (1 - expected))) << queue;
  }
}

TEST(EcnMarkerTest, MarksNothingUnlessAsked) {
  EcnMarker marker({}, base::Random(1));
  EXPECT_FALSE(marker.Marks(UINT64_MAX));
}

TEST(EcnMarkerTest, AStepMarksAllFromThereOn) {
  EcnMarker marker({5000, 5000, 1}, base::Random(1));
  EXPECT_FALSE(marker.Marks(5000));
  EXPECT_TRUE(marker.Marks(5001));
}

class EcnSwitchTest : public SwitchTest {
 protected:
  SwitchOptions Step() const {
    SwitchOptions options;
    options.ecn = {2500, 2500, 1};
    return options;
  }
};

TEST_F(EcnSwitchTest, AQueueIsMeasuredByPortAndPriority) {
  Build(3, Step());
  for (uint32_t i = 0; i < 5; ++i) Arrive(0, 2, i);
  Arrive(0, 2, 10, 3);  // another priority
  Arrive(1, 0, 11);     // another port
  scheduler_.RunUntilIdle();
  std::vector<uint32_t> marked;
  for (const Sink::Arrived& one : sink(2).arrived) {
    if (one.marked) marked.push_back(one.psn);
  }
  // The first leaves at once, the third of those that wait makes the queue 3,000 bytes long.
  EXPECT_EQ(marked, (std::vector<uint32_t>{3, 4}));
  EXPECT_EQ(counters(2, 0).marked, 2u);
  EXPECT_FALSE(sink(0).arrived[0].marked);
}

TEST_F(EcnSwitchTest, SendersWithoutEcnGetNoMarks) {
  Build(2, Step());
  for (uint32_t i = 0; i < 5; ++i) {
    Frame* frame = MakeFrame(i, 0, 1000, 1);
    frame->ecn = verbs::soft::Ecn::kNotCapable;
    switch_->Receive(frame, 0);
  }
  scheduler_.RunUntilIdle();
  EXPECT_EQ(sink(1).arrived.size(), 5u);
  EXPECT_EQ(counters(1, 0).marked, 0u);
}

}  // namespace
}  // namespace tokamak::sim
