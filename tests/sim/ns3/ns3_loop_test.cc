// SPDX-License-Identifier: GPL-2.0-only
//
// Promises of every event loop, and Spend, on ns-3's scheduler.
#include "sim/ns3/ns3_loop.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "ns3/nstime.h"
#include "ns3/simulator.h"
#include "sim/time/sim_loop.h"
#include "tests/base/event_loop_contract.h"

namespace tokamak::base {
namespace {

class Ns3Harness final : public LoopHarness {
 public:
  // `start` is what the simulator has reached before the loop begins.
  explicit Ns3Harness(Duration start) {
    sim::PrepareSimulator();
    if (start > Duration()) sim::Ns3Loop::RunUntil([] { return false; }, Time() + start);
    loop_ = std::make_unique<sim::Ns3Loop>();
  }
  ~Ns3Harness() override {
    ns3::Simulator::Destroy();
    loop_.reset();
  }
  EventLoop& loop() override { return *loop_; }
  bool RunUntil(const std::function<bool()>& done) override {
    return sim::Ns3Loop::RunUntil(done, loop_->Now() + Seconds(1000));
  }

 private:
  std::unique_ptr<sim::Ns3Loop> loop_;
};

LoopCase Starting(std::string name, Duration start) {
  return {std::move(name), [start] { return std::make_unique<Ns3Harness>(start); }};
}

INSTANTIATE_TEST_SUITE_P(Ns3Loop, EventLoopContract,
                         testing::Values(Starting("FromZero", Duration()), Starting("AfterADay", Seconds(86'400))),
                         LoopCaseName);

}  // namespace
}  // namespace tokamak::base

namespace tokamak::sim {
namespace {

using base::Microseconds;
using base::Time;
using base::Timer;

class Ns3LoopTest : public testing::Test {
 protected:
  Ns3LoopTest() {
    PrepareSimulator();
    node_ = std::make_unique<Ns3Loop>();
    nic_ = std::make_unique<Ns3Loop>();
  }
  ~Ns3LoopTest() override { ns3::Simulator::Destroy(); }

  static Time At(int64_t microseconds) { return Time() + Microseconds(microseconds); }

  // A task that notes its name and when, on ns-3's clock, it starts.
  base::Task Note(std::string name) {
    return [this, name] { log_ += name + "@" + std::to_string(ns3::Simulator::Now().GetMicroSeconds()) + " "; };
  }

  std::unique_ptr<Ns3Loop> node_;
  std::unique_ptr<Ns3Loop> nic_;
  std::string log_;
  Timer a_, b_, c_, d_;
};

TEST_F(Ns3LoopTest, APicosecondIsNotLost) {
  int64_t reached = 0;
  a_ = node_->RunAfter(base::Duration::Picoseconds(334'241), [&] { reached = ns3::Simulator::Now().GetPicoSeconds(); });
  ns3::Simulator::Run();
  EXPECT_EQ(reached, 334'241);
}

TEST_F(Ns3LoopTest, TasksAndEventsOfNs3RunInOrderOfTheirTime) {
  ns3::Simulator::Schedule(ns3::MicroSeconds(2), Note("event"));
  a_ = node_->RunAt(At(1), Note("a"));
  b_ = node_->RunAt(At(3), Note("b"));
  ns3::Simulator::Schedule(ns3::MicroSeconds(4), [this] { c_ = node_->RunAfter(Microseconds(2), Note("c")); });
  ns3::Simulator::Run();
  EXPECT_EQ(log_, "a@1 event@2 b@3 c@6 ");
}

TEST_F(Ns3LoopTest, CancelledTasksLeaveNothingInNs3ThatKeepsItRunning) {
  for (int i = 0; i < 1000; ++i) a_ = node_->RunAfter(base::Milliseconds(1), Note("never"));
  a_.Cancel();
  ns3::Simulator::Run();
  EXPECT_EQ(log_, "");
  EXPECT_LE(ns3::Simulator::GetEventCount(), 1u);
}

TEST_F(Ns3LoopTest, SpendMovesNowWithinTheTask) {
  a_ = node_->RunAt(At(10), [this] {
    node_->Spend(Microseconds(5));
    EXPECT_TRUE(node_->Now() == At(15));
    node_->Spend(Microseconds(2));
    EXPECT_TRUE(node_->Now() == At(17));
    EXPECT_TRUE(nic_->Now() == At(17));
    log_ += "spent";
  });
  ns3::Simulator::Run();
  EXPECT_EQ(log_, "spent");
}

TEST_F(Ns3LoopTest, TheNextTaskStartsWhenTheProcessorIsFreeAndOthersGoOn) {
  a_ = node_->RunAt(At(0), [this] { node_->Spend(Microseconds(10)); });
  b_ = node_->RunAt(At(5), Note("late"));
  c_ = node_->RunAt(At(3), Note("early"));
  d_ = nic_->RunAt(At(4), Note("nic"));
  ns3::Simulator::Run();
  EXPECT_EQ(log_, "nic@4 early@10 late@10 ");
}

TEST_F(Ns3LoopTest, TasksPostedBeforeSpendRunEarlierThanThosePostedAfter) {
  a_ = node_->RunAt(At(0), [this] {
    b_ = nic_->Post(Note("before"));
    node_->Spend(Microseconds(10));
    c_ = nic_->Post(Note("after"));
    d_ = node_->RunAfter(Microseconds(1), Note("timer"));
  });
  ns3::Simulator::Run();
  EXPECT_EQ(log_, "before@0 after@10 timer@11 ");
}

TEST_F(Ns3LoopTest, RaisesBeforeAndAfterSpendAreBothAnsweredInTheirTime) {
  const auto signal = nic_->MakeSignal(Note("signal"));
  a_ = node_->RunAt(At(0), [&] {
    signal->Raise();
    node_->Spend(Microseconds(10));
    signal->Raise();
  });
  ns3::Simulator::Run();
  EXPECT_EQ(log_, "signal@0 signal@10 ");
}

TEST_F(Ns3LoopTest, SpendOutsideOfTasksCountsForTheLoop) {
  node_->Spend(Microseconds(3));
  EXPECT_TRUE(node_->Now() == At(3));
  EXPECT_TRUE(nic_->Now() == At(0));
  a_ = node_->Post(Note("a"));
  b_ = nic_->Post(Note("b"));
  ns3::Simulator::Run();
  EXPECT_EQ(log_, "b@0 a@3 ");
}

TEST_F(Ns3LoopTest, SpendingTheTimeOfAnotherLoopIsAMistake) {
  a_ = node_->Post([this] { nic_->Spend(Microseconds(1)); });
  EXPECT_DEATH(ns3::Simulator::Run(), "does not run");
}

TEST_F(Ns3LoopTest, ATaskMayDropItsOwnLoop) {
  a_ = node_->RunAt(At(5), [this] {
    node_->Spend(Microseconds(1));
    b_ = nic_->Post(Note("b"));
    a_ = Timer();
    node_.reset();
  });
  ns3::Simulator::Run();
  EXPECT_EQ(node_, nullptr);
  EXPECT_EQ(log_, "b@6 ");
}

TEST_F(Ns3LoopTest, TimersCanBeDroppedAfterTheSimulatorWasDestroyed) {
  a_ = node_->RunAt(At(5), Note("never"));
  ns3::Simulator::Destroy();
  EXPECT_TRUE(a_.armed());
  a_.Cancel();
  EXPECT_FALSE(a_.armed());
}

TEST_F(Ns3LoopTest, RunUntilStopsAtOnceOrAtItsLimit) {
  a_ = node_->RunAt(At(5), Note("a"));
  b_ = node_->RunAt(At(6), Note("b"));
  EXPECT_TRUE(Ns3Loop::RunUntil([this] { return !log_.empty(); }, At(100)));
  EXPECT_EQ(log_, "a@5 ");
  EXPECT_FALSE(Ns3Loop::RunUntil([] { return false; }, At(50)));
  EXPECT_EQ(log_, "a@5 b@6 ");
  EXPECT_TRUE(node_->Now() == At(50));
}

TEST_F(Ns3LoopTest, TasksAtTheLimitRunAndLaterOnesDoNot) {
  a_ = node_->RunAt(At(5), [this] { b_ = nic_->Post(Note("b")); });
  c_ = node_->RunAt(At(6), Note("c"));
  EXPECT_FALSE(Ns3Loop::RunUntil([] { return false; }, At(5)));
  EXPECT_EQ(log_, "b@5 ");
}

TEST_F(Ns3LoopTest, ALimitThatHasPassedRunsNothing) {
  EXPECT_FALSE(Ns3Loop::RunUntil([] { return false; }, At(5)));
  a_ = node_->Post(Note("a"));
  EXPECT_FALSE(Ns3Loop::RunUntil([] { return false; }, At(4)));
  EXPECT_EQ(log_, "");
}

TEST_F(Ns3LoopTest, ALimitThatWasReachedTogetherWithTheEndIsForgotten) {
  a_ = node_->RunAt(At(5), Note("a"));
  b_ = node_->RunAt(At(5), Note("b"));
  EXPECT_TRUE(Ns3Loop::RunUntil([this] { return !log_.empty(); }, At(5)));
  EXPECT_FALSE(Ns3Loop::RunUntil([] { return false; }, At(9)));
  EXPECT_EQ(log_, "a@5 b@5 ");
  EXPECT_TRUE(node_->Now() == At(9));
}

// Tasks of three loops that ask for others, now or a little later, change their minds, and spend
// time: much happens at the same times.
std::string BusyLife(const std::vector<base::EventLoop*>& loops, const std::function<void()>& run, uint64_t seed) {
  std::string log;
  base::Random random(seed);
  std::vector<Timer> timers(40);
  uint32_t left = 3000;
  std::function<void(size_t)> act = [&](size_t loop) {
    log += std::to_string(loop) + "@" + std::to_string((loops[loop]->Now() - Time()).picoseconds()) + " ";
    if (random.Chance(0.1)) loops[loop]->Spend(base::Duration::Picoseconds(2));
    for (int i = 0; i < 2 && left > 0; ++i, --left) {
      const size_t other = random.Below(loops.size());
      const auto delay = base::Duration::Picoseconds(static_cast<int64_t>(random.Below(4)));
      timers[random.Below(timers.size())] = loops[other]->RunAfter(delay, [&act, other] { act(other); });
    }
  };
  timers[0] = loops[0]->Post([&act] { act(0); });
  run();
  return log;
}

TEST_F(Ns3LoopTest, TasksOfAllLoopsRunInTheOrderThatTheyHaveOnSimLoops) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ns3::Simulator::Destroy();
    Ns3Loop a, b, c;
    const std::string ours = BusyLife(
        {&a, &b, &c}, [] { ns3::Simulator::Run(); }, seed);
    Scheduler scheduler;
    SimLoop d(scheduler), e(scheduler), f(scheduler);
    EXPECT_EQ(ours, BusyLife(
                        {&d, &e, &f}, [&scheduler] { scheduler.Run(); }, seed))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace tokamak::sim
