#include "sim/time/sim_loop.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/base/event_loop_contract.h"

namespace tokamak::base {
namespace {

class SimHarness final : public LoopHarness {
 public:
  explicit SimHarness(Time start) : scheduler_(start), loop_(scheduler_) {}
  EventLoop& loop() override { return loop_; }
  bool RunUntil(const std::function<bool()>& done) override {
    return scheduler_.RunUntil(done, scheduler_.Now() + Seconds(1000));
  }

 private:
  sim::Scheduler scheduler_;
  sim::SimLoop loop_;
};

LoopCase Starting(std::string name, Time start) {
  return {std::move(name), [start] { return std::make_unique<SimHarness>(start); }};
}

INSTANTIATE_TEST_SUITE_P(SimLoop, EventLoopContract,
                         testing::Values(Starting("FromZero", Time()),
                                         Starting("WhereTimeWraps", Time() - Microseconds(5))),
                         LoopCaseName);

}  // namespace
}  // namespace tokamak::base

namespace tokamak::sim {
namespace {

using base::Duration;
using base::Microseconds;
using base::Time;
using base::Timer;

class SimLoopTest : public testing::Test {
 protected:
  static Time At(int64_t microseconds) { return Time() + Microseconds(microseconds); }

  // A task that notes its name and when, on the world's clock, it starts.
  base::Task Note(std::string name) {
    return [this, name] { log_ += name + "@" + Moment() + " "; };
  }
  std::string Moment() const { return std::to_string((scheduler_.Now() - Time()).microseconds()); }

  Scheduler scheduler_;
  SimLoop node_{scheduler_};
  SimLoop nic_{scheduler_};
  SimLoop other_{scheduler_};
  std::string log_;
  Timer a_, b_, c_, d_;
};

TEST_F(SimLoopTest, TimeJumpsToTheNextTask) {
  a_ = node_.RunAfter(base::Seconds(3600), Note("a"));
  scheduler_.Run();
  EXPECT_EQ(log_, "a@3600000000 ");
  EXPECT_EQ(scheduler_.tasks_run(), 1u);
}

TEST_F(SimLoopTest, APicosecondIsNotLost) {
  const Time time = Time() + Duration::Picoseconds(334'240);
  a_ = node_.RunAt(time, [] {});
  scheduler_.Run();
  EXPECT_TRUE(scheduler_.Now() == time);
}

TEST_F(SimLoopTest, SpendMovesNowWithinTheTask) {
  a_ = node_.RunAt(At(10), [this] {
    EXPECT_TRUE(node_.Now() == At(10));
    node_.Spend(Microseconds(5));
    EXPECT_TRUE(node_.Now() == At(15));
    node_.Spend(Microseconds(2));
    EXPECT_TRUE(node_.Now() == At(17));
  });
  scheduler_.Run();
  EXPECT_TRUE(node_.busy_until() == At(17));
  EXPECT_TRUE(node_.spent() == Microseconds(7));
}

TEST_F(SimLoopTest, TheNextTaskOfTheNodeStartsWhenItsProcessorIsFree) {
  a_ = node_.RunAt(At(0), [this] { node_.Spend(Microseconds(10)); });
  b_ = node_.RunAt(At(3), Note("b"));
  c_ = node_.RunAt(At(20), Note("c"));
  scheduler_.Run();
  EXPECT_EQ(log_, "b@10 c@20 ");
}

TEST_F(SimLoopTest, TasksThatWaitForTheProcessorKeepTheirOrder) {
  a_ = node_.RunAt(At(0), [this] { node_.Spend(Microseconds(10)); });
  b_ = node_.RunAt(At(5), Note("late"));
  c_ = node_.RunAt(At(3), Note("early"));
  scheduler_.Run();
  EXPECT_EQ(log_, "early@10 late@10 ");
}

TEST_F(SimLoopTest, TasksPostedBeforeSpendRunEarlierThanThosePostedAfter) {
  a_ = node_.RunAt(At(0), [this] {
    b_ = nic_.Post(Note("before"));
    node_.Spend(Microseconds(10));
    c_ = nic_.Post(Note("after"));
    d_ = node_.RunAfter(Microseconds(1), Note("timer"));
  });
  scheduler_.Run();
  EXPECT_EQ(log_, "before@0 after@10 timer@11 ");
}

TEST_F(SimLoopTest, ATimeInThePastOfASpentTaskCountsAsItsNow) {
  a_ = node_.RunAt(At(0), [this] {
    const Time before = node_.Now();
    node_.Spend(Microseconds(10));
    b_ = nic_.RunAt(before, Note("b"));
  });
  scheduler_.Run();
  EXPECT_EQ(log_, "b@10 ");
}

TEST_F(SimLoopTest, ABusyNodeDoesNotDelayItsDevice) {
  a_ = node_.RunAt(At(0), [this] { node_.Spend(Microseconds(100)); });
  b_ = nic_.RunAt(At(30), Note("nic"));
  c_ = node_.RunAt(At(30), Note("node"));
  scheduler_.Run();
  EXPECT_EQ(log_, "nic@30 node@100 ");
}

TEST_F(SimLoopTest, LoopsWithTasksOfOneTimeRunThemInTheOrderAsked) {
  a_ = node_.RunAt(At(1), Note("a"));
  b_ = nic_.RunAt(At(1), Note("b"));
  c_ = node_.RunAt(At(1), Note("c"));
  d_ = nic_.RunAt(At(1), Note("d"));
  scheduler_.Run();
  EXPECT_EQ(log_, "a@1 b@1 c@1 d@1 ");
}

TEST_F(SimLoopTest, ASignalCountsFromTheSpentTimeOfItsRaiser) {
  const auto signal = nic_.MakeSignal(Note("signal"));
  a_ = node_.RunAt(At(0), [&] {
    node_.Spend(Microseconds(10));
    signal->Raise();
  });
  b_ = nic_.RunAt(At(4), Note("b"));
  scheduler_.Run();
  EXPECT_EQ(log_, "b@4 signal@10 ");
}

TEST_F(SimLoopTest, RaisesBeforeAndAfterSpendAreBothAnsweredInTheirTime) {
  const auto signal = nic_.MakeSignal(Note("signal"));
  a_ = node_.RunAt(At(0), [&] {
    signal->Raise();
    node_.Spend(Microseconds(10));
    signal->Raise();
  });
  scheduler_.Run();
  EXPECT_EQ(log_, "signal@0 signal@10 ");
}

TEST_F(SimLoopTest, AnEarlierRaiseIsNotHeldUpByALaterOne) {
  const auto signal = nic_.MakeSignal(Note("signal"));
  a_ = node_.RunAt(At(0), [&] {
    node_.Spend(Microseconds(10));
    signal->Raise();
  });
  b_ = other_.RunAt(At(2), [&] { signal->Raise(); });
  scheduler_.Run();
  EXPECT_EQ(log_, "signal@2 signal@10 ");
}

TEST_F(SimLoopTest, RaisesToABusyLoopAreAnsweredByOneRun) {
  const auto signal = nic_.MakeSignal(Note("signal"));
  a_ = nic_.RunAt(At(0), [this] { nic_.Spend(Microseconds(10)); });
  b_ = node_.RunAt(At(2), [&] { signal->Raise(); });
  c_ = node_.RunAt(At(4), [&] { signal->Raise(); });
  scheduler_.Run();
  EXPECT_EQ(log_, "signal@10 ");
}

TEST_F(SimLoopTest, SpendOutsideOfTasksCountsForTheLoop) {
  node_.Spend(Microseconds(3));
  EXPECT_TRUE(node_.Now() == At(3));
  EXPECT_TRUE(nic_.Now() == At(0));
  a_ = node_.Post(Note("a"));
  b_ = nic_.Post(Note("b"));
  scheduler_.Run();
  EXPECT_EQ(log_, "b@0 a@3 ");
}

TEST_F(SimLoopTest, SpendingTheTimeOfAnotherLoopIsAMistake) {
  a_ = node_.Post([this] { nic_.Spend(Microseconds(1)); });
  EXPECT_DEATH(scheduler_.Run(), "does not run");
}

TEST_F(SimLoopTest, RunUntilRunsTasksThatStartByThenAndStopsThere) {
  a_ = node_.RunAt(At(5), Note("a"));
  b_ = node_.RunAt(At(6), Note("b"));
  scheduler_.RunUntil(At(5));
  EXPECT_EQ(log_, "a@5 ");
  scheduler_.RunFor(Duration::Picoseconds(1));
  EXPECT_TRUE(node_.Now() == At(5) + Duration::Picoseconds(1));
  scheduler_.RunUntil(At(100));
  EXPECT_EQ(log_, "a@5 b@6 ");
  EXPECT_TRUE(node_.Now() == At(100));
}

TEST_F(SimLoopTest, RunUntilDoneStopsAtOnceOrAtItsLimit) {
  a_ = node_.RunAt(At(5), Note("a"));
  b_ = node_.RunAt(At(6), Note("b"));
  EXPECT_TRUE(scheduler_.RunUntil([this] { return !log_.empty(); }, At(100)));
  EXPECT_EQ(log_, "a@5 ");
  EXPECT_FALSE(scheduler_.RunUntil([] { return false; }, At(50)));
  EXPECT_EQ(log_, "a@5 b@6 ");
  EXPECT_TRUE(scheduler_.Now() == At(50));
}

TEST_F(SimLoopTest, RunUntilIdleGivesUpAfterItsMaximumOfTasks) {
  std::function<void()> again = [&] { a_ = node_.RunAfter(Microseconds(1), [&] { again(); }); };
  again();
  EXPECT_FALSE(scheduler_.RunUntilIdle(100));
  EXPECT_EQ(scheduler_.tasks_run(), 100u);
  a_.Cancel();
  EXPECT_TRUE(scheduler_.RunUntilIdle());
  EXPECT_TRUE(scheduler_.idle());
}

TEST_F(SimLoopTest, StopEndsRunAfterTheTask) {
  a_ = node_.RunAt(At(1), [this] { scheduler_.Stop(); });
  b_ = node_.RunAt(At(2), Note("b"));
  scheduler_.Run();
  EXPECT_EQ(log_, "");
  scheduler_.Run();
  EXPECT_EQ(log_, "b@2 ");
}

TEST_F(SimLoopTest, ACrashedNodesTasksNeverRun) {
  auto crashing = std::make_unique<SimLoop>(scheduler_);
  Timer lost = crashing->RunAt(At(5), Note("lost"));
  a_ = node_.RunAt(At(2), [&] {
    lost = Timer();
    crashing.reset();
  });
  b_ = node_.RunAt(At(9), Note("b"));
  scheduler_.Run();
  EXPECT_EQ(log_, "b@9 ");
}

TEST_F(SimLoopTest, ATaskMayDropItsOwnLoop) {
  auto crashing = std::make_unique<SimLoop>(scheduler_);
  a_ = crashing->RunAt(At(5), [&] {
    crashing->Spend(Microseconds(1));
    a_ = Timer();
    crashing.reset();
    b_ = node_.Post(Note("b"));
  });
  scheduler_.Run();
  EXPECT_EQ(log_, "b@6 ");
}

TEST_F(SimLoopTest, ManyLoopsRunInOrderOfTime) {
  std::vector<std::unique_ptr<SimLoop>> loops;
  std::vector<Timer> timers;
  uint64_t seed = 1;
  for (int i = 0; i < 100; ++i) loops.push_back(std::make_unique<SimLoop>(scheduler_));
  Time last;
  int count = 0;
  for (int i = 0; i < 2000; ++i) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    SimLoop& loop = *loops[seed >> 33 & 63];
    timers.push_back(loop.RunAt(At(static_cast<int64_t>(seed >> 50)), [&] {
      EXPECT_TRUE(scheduler_.Now() >= last);
      last = scheduler_.Now();
      ++count;
      loop.Spend(Microseconds(static_cast<int64_t>(seed & 7)));
    }));
    if (i % 5 == 0) timers[timers.size() / 2].Cancel();
  }
  while (scheduler_.Step()) {
  }
  EXPECT_GT(count, 1500);
}

}  // namespace
}  // namespace tokamak::sim
