// Pauses: obeyed, asked for, taken back, forgotten; and queues that never move again.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "sim/fabric/switch/egress_port.h"
#include "tests/sim/fabric/parts_fixture.h"

namespace tokamak::sim {
namespace {

constexpr int64_t kQuantum = 64 * 80;  // picoseconds at 100 Gb/s
constexpr int64_t kFrame = 1000 * 80;
constexpr int64_t kDelay = 1'000'000;

class PfcTest : public SwitchTest {
 protected:
  static SwitchOptions Thresholds(uint64_t xoff, uint64_t xon) {
    SwitchOptions options;
    options.pfc.xoff = xoff;
    options.pfc.xon = xon;
    return options;
  }
};

TEST_F(PfcTest, APauseEndsByItselfAfterItsQuanta) {
  Build(2, {});
  Pause(1, 3, 100);
  Arrive(0, 1, 1, 3);
  scheduler_.RunUntilIdle();
  ASSERT_EQ(sink(1).arrived.size(), 1u);
  EXPECT_EQ(Since(sink(1).arrived[0].time), 100 * kQuantum + kFrame + kDelay);
  EXPECT_EQ(counters(1, 3).paused.picoseconds(), 100 * kQuantum);
  EXPECT_EQ(counters(1, 3).pauses_received, 1u);
}

TEST_F(PfcTest, AnotherPauseBeginsTheTimeAnewAndZeroEndsIt) {
  Build(2, {});
  Pause(1, 3, 100);
  Arrive(0, 1, 1, 3);
  scheduler_.RunFor(base::Duration::Picoseconds(60 * kQuantum));
  Pause(1, 3, 100);
  scheduler_.RunFor(base::Duration::Picoseconds(60 * kQuantum));
  EXPECT_EQ(links_[1]->counters().sent, 0u);
  Pause(1, 3, 0);
  scheduler_.RunUntilIdle();
  ASSERT_EQ(sink(1).arrived.size(), 1u);
  EXPECT_EQ(Since(sink(1).arrived[0].time), 120 * kQuantum + kFrame + kDelay);
  EXPECT_EQ(counters(1, 3).pauses_received, 1u) << "the second prolonged the first";
}

TEST_F(PfcTest, APauseStopsItsPriorityAloneAndNoFrameThatHasBegun) {
  Build(2, {});
  Arrive(0, 1, 1, 3);
  Arrive(0, 1, 2, 3);
  Arrive(0, 1, 3, 0);
  Pause(1, 3, 1000);
  scheduler_.RunFor(base::Microseconds(3));
  ASSERT_EQ(sink(1).arrived.size(), 2u);
  EXPECT_EQ(sink(1).arrived[0].psn, 1u);
  EXPECT_EQ(sink(1).arrived[1].psn, 3u);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(sink(1).arrived.size(), 3u);
}

TEST_F(PfcTest, ANeighbourIsStoppedAtXoffAndReleasedAtXon) {
  Build(2, Thresholds(5000, 2000));
  Pause(1, 3, 1000);  // so that frames stay
  for (uint32_t i = 0; i < 5; ++i) Arrive(0, 1, i, 3);
  scheduler_.RunFor(base::Microseconds(2));
  EXPECT_TRUE(sink(0).pauses.empty());
  Arrive(0, 1, 5, 3);
  Arrive(0, 1, 6, 3);
  const int64_t crossed = Now();
  scheduler_.RunFor(base::Microseconds(2));
  ASSERT_EQ(sink(0).pauses.size(), 1u) << "asked once";
  EXPECT_EQ(Since(sink(0).pauses[0].time), crossed + 84 * 80 + kDelay);
  EXPECT_EQ(sink(0).pauses[0].frame.enabled, 1u << 3);
  EXPECT_EQ(sink(0).pauses[0].frame.quanta[3], 65535u);

  Pause(1, 3, 0);
  const int64_t released = Now();
  scheduler_.RunUntilIdle();
  ASSERT_EQ(sink(0).pauses.size(), 2u);
  EXPECT_EQ(sink(0).pauses[1].frame.enabled, 1u << 3);
  EXPECT_EQ(sink(0).pauses[1].frame.quanta[3], 0u);
  // Two frames stay when the fifth of seven leaves.
  EXPECT_EQ(Since(sink(0).pauses[1].time), released + 4 * kFrame + 84 * 80 + kDelay);
  EXPECT_EQ(counters(0, 3).pauses_sent, 1u);
  EXPECT_EQ(sink(1).arrived.size(), 7u);
}

TEST_F(PfcTest, APauseThatHoldsIsRepeatedBeforeItEnds) {
  SwitchOptions options = Thresholds(1000, 0);
  options.pfc.quanta = 1000;
  Build(2, options);
  Pause(1, 3, 65535);
  Arrive(0, 1, 1, 3);
  Arrive(0, 1, 2, 3);
  scheduler_.RunFor(base::Duration::Picoseconds(2600 * kQuantum));
  ASSERT_GE(sink(0).pauses.size(), 5u);
  for (size_t i = 1; i < sink(0).pauses.size(); ++i) {
    EXPECT_EQ(sink(0).pauses[i].frame.quanta[3], 1000u);
    EXPECT_LE((sink(0).pauses[i].time - sink(0).pauses[i - 1].time).picoseconds(), 501 * kQuantum);
  }
  Pause(1, 3, 0);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(sink(0).pauses.back().frame.quanta[3], 0u);
}

// A neighbour that sends all the time, and obeys.
class Neighbour final : public FrameReceiver, public EgressOwner {
 public:
  Neighbour(Environment& environment, Link& link)
      : environment_(environment), egress_(environment, *this, link, Place{1, 0}, {}) {}

  void Receive(Frame* frame, uint32_t) override {
    if (frame->is_pause) egress_.OnPause(frame->pause);
    environment_.frames.Give(frame);
  }
  EgressPort& egress() { return egress_; }

 private:
  void OnDequeue(uint32_t, const Frame&) override {}
  PauseFrame MakePause(uint32_t) override { return {}; }
  void OnIdle(uint32_t) override {}
  void OnResumed(uint32_t) override {}

  Environment& environment_;
  EgressPort egress_;
};

class HeadroomTest : public PartsTest {
 protected:
  static constexpr uint32_t kFrames = 30;

  // How much of port 0's headroom is taken where port 1 is paused, its neighbour sends the largest
  // frames for it, and from `phase` on the largest frames of others keep the way back busy.
  uint64_t Take(const LinkParameters& parameters, base::Duration phase) {
    SwitchOptions options;
    options.pfc.xoff = 10'000;
    options.pfc.xon = 5000;
    const uint32_t wire = MostWireBytes(options.buffer.mtu);
    Switch middle(environment_, options, 0, base::Random(1));
    Sink sink(loop_, frames_);
    // On the heap: GCC's address sanitizer does not align to cache lines on the stack (PR 110027).
    const auto back = std::make_unique<Link>(environment_, parameters, Place{0, 0});
    const auto on = std::make_unique<Link>(environment_, parameters, Place{0, 1});
    const auto in = std::make_unique<Link>(environment_, parameters, Place{1, 0});
    Neighbour neighbour(environment_, *in);
    back->Connect(neighbour, 0);
    on->Connect(sink, 0);
    in->Connect(middle, 0);
    RouteTable routes(1, 2);
    for (Link* link : {back.get(), on.get()}) {
      const uint32_t port = middle.AddPort(*link);
      routes.Set(port, routes.AddGroup({port}));
    }
    EXPECT_TRUE(middle.Start().ok());
    middle.SetRoutes(std::move(routes));

    middle.Receive(MakePause(3, 65535), 1);
    for (uint32_t i = 0; i < kFrames; ++i) neighbour.egress().Enqueue(MakeFrame(i, 3, wire, 1));
    scheduler_.RunFor(phase);
    for (uint32_t i = 0; i < kFrames; ++i) middle.Receive(MakeFrame(i, 1, wire, 0), 1);
    scheduler_.RunFor(base::Microseconds(20));
    const uint64_t taken = middle.buffer().most_headroom();
    middle.Receive(MakePause(3, 0), 1);
    scheduler_.RunUntilIdle();
    EXPECT_EQ(sink.arrived.size(), kFrames) << "none is lost";
    return taken;
  }
};

// Whatever the neighbour and the way back are in the middle of.
TEST_F(HeadroomTest, HoldsWhatANeighbourStillSendsAndNotMuchMore) {
  constexpr int kSteps = 16;
  const base::Duration frame = Rate::Gigabits(100).TimeOf(MostWireBytes(4096));
  uint64_t least_free = UINT64_MAX;
  for (int i = 0; i < kSteps; ++i) {
    const LinkParameters parameters{Rate::Gigabits(100), base::Microseconds(1) + frame * i / (2 * kSteps)};
    const uint64_t headroom = HeadroomOf(parameters, 4096, base::Duration());
    for (int j = 0; j < kSteps; ++j) {
      const uint64_t taken = Take(parameters, frame * j / kSteps);
      ASSERT_LE(taken, headroom);
      least_free = std::min(least_free, headroom - taken);
    }
  }
  EXPECT_LT(least_free, MostWireBytes(4096) / 2);
}

TEST_F(PfcTest, BeyondTheHeadroomLosslessFramesAreDroppedAndCounted) {
  SwitchOptions options = Thresholds(5000, 2000);
  options.pfc.headroom = 3000;
  Build(2, options);
  Pause(1, 3, 1000);
  for (uint32_t i = 0; i < 10; ++i) Arrive(0, 1, i, 3);
  EXPECT_EQ(drops(1, DropReason::kHeadroom), 2u);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(sink(1).arrived.size(), 8u);
  EXPECT_EQ(switch_->buffer().used(), 0u);
}

TEST_F(PfcTest, ALinkThatGoesDownForgetsPauses) {
  Build(2, Thresholds(500, 0));
  Pause(1, 3, 65535);
  Arrive(0, 1, 1, 3);
  scheduler_.RunFor(base::Microseconds(2));
  ASSERT_EQ(sink(0).pauses.size(), 1u);
  // At port 0 the neighbour hears again of pauses that it may have missed; at port 1 the pause is
  // over.
  switch_->OnLinkChange(0, true);
  scheduler_.RunFor(base::Microseconds(2));
  EXPECT_EQ(sink(0).pauses.size(), 2u);
  EXPECT_TRUE(sink(1).arrived.empty());
  switch_->OnLinkChange(1, false);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(sink(1).arrived.size(), 1u);
}

class WatchdogTest : public SwitchTest {
 protected:
  static SwitchOptions Watching(WatchdogOptions::Action action) {
    SwitchOptions options;
    options.watchdog.detection = base::Microseconds(500);
    options.watchdog.restoration = base::Microseconds(300);
    options.watchdog.action = action;
    return options;
  }

  // A neighbour that never stops asking for a pause.
  void Storm(base::Duration duration) {
    const base::Time end = loop_.Now() + duration;
    while (loop_.Now() < end) {
      Pause(1, 3, 40'000);  // 205 us
      scheduler_.RunFor(base::Microseconds(100));
    }
  }
};

TEST_F(WatchdogTest, TheWatchdogDropsWaitingAndNewFramesUntilThePausesEnd) {
  Build(2, Watching(WatchdogOptions::Action::kDrop));
  for (uint32_t i = 0; i < 5; ++i) Arrive(0, 1, i, 3);
  Storm(base::Microseconds(400));
  EXPECT_EQ(counters(1, 3).storms, 0u) << "not yet";
  // The first had begun before the pause.
  EXPECT_EQ(switch_->queued(), 4u);
  Storm(base::Microseconds(200));
  EXPECT_EQ(counters(1, 3).storms, 1u);
  EXPECT_EQ(drops(1, DropReason::kWatchdog), 4u);
  EXPECT_EQ(switch_->buffer().used(), 0u);
  Arrive(0, 1, 6, 3);
  EXPECT_EQ(drops(1, DropReason::kWatchdog), 5u);
  Arrive(0, 1, 7, 0);  // another priority
  scheduler_.RunUntilIdle();
  Arrive(0, 1, 8, 3);
  scheduler_.RunUntilIdle();
  ASSERT_EQ(sink(1).arrived.size(), 3u);
  EXPECT_EQ(sink(1).arrived[1].psn, 7u);
  EXPECT_EQ(sink(1).arrived[2].psn, 8u) << "all is well again";
}

TEST_F(WatchdogTest, TheWatchdogMaySendNevertheless) {
  Build(2, Watching(WatchdogOptions::Action::kForward));
  for (uint32_t i = 0; i < 5; ++i) Arrive(0, 1, i, 3);
  Storm(base::Microseconds(600));
  EXPECT_EQ(counters(1, 3).storms, 1u);
  EXPECT_EQ(sink(1).arrived.size(), 5u);
  scheduler_.RunUntilIdle();
  Pause(1, 3, 1000);
  Arrive(0, 1, 6, 3);
  scheduler_.RunFor(base::Microseconds(4));
  EXPECT_EQ(sink(1).arrived.size(), 5u) << "pauses count again";
  scheduler_.RunUntilIdle();
  EXPECT_EQ(sink(1).arrived.size(), 6u);
}

TEST_F(WatchdogTest, TheWatchdogIgnoresPausesThatEnd) {
  Build(2, Watching(WatchdogOptions::Action::kDrop));
  for (uint32_t i = 0; i < 50; ++i) {
    Arrive(0, 1, i, 3);
    Arrive(0, 1, i, 3);
    Pause(1, 3, 60'000);
    scheduler_.RunFor(base::Microseconds(300));
    Pause(1, 3, 0);
    scheduler_.RunFor(base::Microseconds(1));
  }
  scheduler_.RunUntilIdle();
  EXPECT_EQ(counters(1, 3).storms, 0u);
  EXPECT_EQ(sink(1).arrived.size(), 100u);
}

}  // namespace
}  // namespace tokamak::sim
