// One direction of a cable: when frames arrive, which do not, and that each is accounted for.
#include "sim/fabric/link/link.h"

#include <cmath>

#include "tests/sim/fabric/parts_fixture.h"

namespace tokamak::sim {
namespace {

class LinkTest : public PartsTest {
 protected:
  void SetUp() override { link_.Connect(sink_, 0); }

  void Send(uint32_t frames) {
    for (uint32_t i = 1; i <= frames; ++i) {
      link_.Transmit(MakeFrame(i));
      scheduler_.RunUntil(link_.free_at());
    }
    scheduler_.RunUntilIdle();
    const LinkCounters& c = link_.counters();
    EXPECT_EQ(c.sent, c.delivered + c.lost + c.dropped_down);
    EXPECT_EQ(frames_.in_use(), 0u);
  }

  // Within five standard deviations.
  static void ExpectNear(uint64_t count, double trials, double probability) {
    EXPECT_NEAR(static_cast<double>(count), trials * probability,
                5 * std::sqrt(trials * probability * (1 - probability)));
  }

  Sink sink_{loop_, frames_};
  Link link_{environment_, {}, Place()};
};

TEST_F(LinkTest, AFrameArrivesWhenItsLastByteHasTravelled) {
  link_.Transmit(MakeFrame(1));
  EXPECT_FALSE(link_.free());
  EXPECT_EQ(link_.in_flight(), 1u);
  scheduler_.RunUntil(link_.free_at());
  link_.Transmit(MakeFrame(2, 0, 500));
  scheduler_.RunUntilIdle();
  ASSERT_EQ(sink_.arrived.size(), 2u);
  EXPECT_EQ(Since(sink_.arrived[0].time), 1'000'000 + 80'000);
  EXPECT_EQ(Since(sink_.arrived[1].time), 1'000'000 + 80'000 + 40'000);
  EXPECT_EQ(link_.counters().sent_bytes, 1500u);
}

TEST_F(LinkTest, ListedPacketsAreLostAndNoOthers) {
  LossOptions loss;
  loss.nth = {1, 4, 5};
  link_.SetLoss(loss, base::Random(1));
  Send(6);
  std::vector<uint32_t> psns;
  for (const Sink::Arrived& one : sink_.arrived) psns.push_back(one.psn);
  EXPECT_EQ(psns, (std::vector<uint32_t>{2, 3, 6}));
  EXPECT_EQ(link_.counters().lost, 3u);
}

TEST_F(LinkTest, PauseFramesAreNeitherLostNorCounted) {
  LossOptions loss;
  loss.nth = {1};
  link_.SetLoss(loss, base::Random(1));
  link_.Transmit(MakePause(3, 10));
  scheduler_.RunUntilIdle();
  EXPECT_EQ(sink_.pauses.size(), 1u);
  Send(1);
  EXPECT_TRUE(sink_.arrived.empty());
}

TEST_F(LinkTest, ChanceLosesAndDamagesAtTheGivenRates) {
  LossOptions loss;
  loss.rate = 0.1;
  loss.corrupt = 0.02;
  link_.SetLoss(loss, base::Random(1));
  Send(20'000);
  ExpectNear(link_.counters().lost, 20'000, 0.1);
  ExpectNear(link_.counters().corrupted, 18'000, 0.02);
  uint64_t corrupt = 0;
  for (const Sink::Arrived& one : sink_.arrived) corrupt += one.corrupt;
  EXPECT_EQ(corrupt, link_.counters().corrupted);
}

TEST_F(LinkTest, BurstsHaveTheGivenLengthAndFrequency) {
  LossOptions loss;
  loss.burst_rate = 0.01;
  loss.burst_length = 8;
  link_.SetLoss(loss, base::Random(1));
  Send(50'000);
  uint32_t bursts = 0;
  uint32_t next = 1;
  for (const Sink::Arrived& one : sink_.arrived) {
    bursts += one.psn != next;
    next = one.psn + 1;
  }
  const double length = static_cast<double>(link_.counters().lost) / bursts;
  EXPECT_NEAR(length, 8, 1.5);
  // A burst begins with a chance of 1 in 100 at each of the packets outside of bursts.
  EXPECT_NEAR(bursts / (50'000.0 - static_cast<double>(link_.counters().lost)), 0.01, 0.002);
}

TEST_F(LinkTest, FramesOnALinkThatGoesDownAreLost) {
  link_.Transmit(MakeFrame(1));
  scheduler_.RunUntil(link_.free_at());
  link_.SetUp(false);
  link_.Transmit(MakeFrame(2));
  scheduler_.RunUntil(link_.free_at());
  link_.SetUp(true);
  link_.Transmit(MakeFrame(3));
  scheduler_.RunUntilIdle();
  ASSERT_EQ(sink_.arrived.size(), 1u);
  EXPECT_EQ(sink_.arrived[0].psn, 3u);
  EXPECT_EQ(link_.counters().dropped_down, 2u);
}

TEST(LossOptionsTest, MistakesAreReported) {
  LossOptions options;
  EXPECT_TRUE(options.Check().ok());
  options.nth = {2, 5};
  EXPECT_TRUE(options.Check().ok());
  options.nth = {5, 2};
  EXPECT_NE(options.Check().message().find("nth"), absl::string_view::npos);
  options = {};
  options.rate = 1.5;
  EXPECT_NE(options.Check().message().find("rate is 1.5"), absl::string_view::npos);
  options = {};
  options.burst_length = 0.5;
  EXPECT_NE(options.Check().message().find("burst_length"), absl::string_view::npos);
}

}  // namespace
}  // namespace tokamak::sim
