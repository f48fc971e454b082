// Promises of every EventLoop (lib/base/event_loop.h), as tests that each implementation runs:
//
//   INSTANTIATE_TEST_SUITE_P(Sim, EventLoopContract,
//                            testing::Values(LoopCase{"virtual", MakeMyLoop}), LoopCaseName);
//
// Loops that have threads around them pass event_loop_thread_contract.h as well.
//
// No test sleeps. One that must see that a task does not run posts another behind it and runs until
// that has run.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/base/event_loop_fixture.h"
#include "tests/base/event_loop_signal_contract.h"

namespace tokamak::base {

TEST_P(EventLoopContract, PostedTasksRunInTheOrderPosted) {
  for (int i = 0; i < 4; ++i) timers_[i] = loop_.Post(Note(i));
  RunUntilRan(4);
  EXPECT_EQ(ran_, (Order{0, 1, 2, 3}));
}

TEST_P(EventLoopContract, TasksRunInOrderOfTheirTime) {
  InATask([this] {
    timers_[0] = loop_.RunAfter(Microseconds(300), Note(3));
    timers_[1] = loop_.RunAfter(Microseconds(100), Note(1));
    timers_[2] = loop_.RunAfter(Microseconds(200), Note(2));
  });
  RunUntilRan(3);
  EXPECT_EQ(ran_, (Order{1, 2, 3}));
}

TEST_P(EventLoopContract, TasksOfOneTimeRunInTheOrderAsked) {
  InATask([this] {
    for (int i = 0; i < 4; ++i) timers_[i] = loop_.RunAfter(Microseconds(100), Note(i));
  });
  RunUntilRan(4);
  EXPECT_EQ(ran_, (Order{0, 1, 2, 3}));
}

TEST_P(EventLoopContract, NoTaskRunsInsideTheCallThatAskedForIt) {
  timers_[0] = loop_.Post(Note(0));
  timers_[1] = loop_.RunAt(loop_.Now() - Seconds(1), Note(1));
  const std::unique_ptr<Signal> signal = loop_.MakeSignal(Note(2));
  signal->Raise();
  EXPECT_EQ(ran_, (Order{}));
  RunUntilRan(3);
}

TEST_P(EventLoopContract, ATaskPostedByATaskRunsAfterItAndAfterThoseDueAlready) {
  timers_[0] = loop_.Post([this] {
    timers_[2] = loop_.Post(Note(2));
    EXPECT_EQ(ran_, (Order{}));
    ran_.push_back(0);
  });
  timers_[1] = loop_.Post(Note(1));
  RunUntilRan(3);
  EXPECT_EQ(ran_, (Order{0, 1, 2}));
}

TEST_P(EventLoopContract, ATimeThatHasPassedCountsAsNow) {
  timers_[0] = loop_.Post([this] {
    timers_[2] = loop_.RunAt(loop_.Now() - Seconds(1), Note(2));
    timers_[3] = loop_.RunAt(loop_.Now() - Seconds(2), Note(3));
  });
  timers_[1] = loop_.Post(Note(1));
  RunUntilRan(3);
  EXPECT_EQ(ran_, (Order{1, 2, 3}));
}

TEST_P(EventLoopContract, ATaskNeverRunsEarly) {
  for (const Duration delay : {Duration::Picoseconds(1), Nanoseconds(1), Microseconds(70), Milliseconds(2)}) {
    const Time due = loop_.Now() + delay;
    bool ran = false;
    timers_[0] = loop_.RunAt(due, [&] {
      EXPECT_TRUE(loop_.Now() >= due);
      ran = true;
    });
    EXPECT_TRUE(harness_->RunUntil([&] { return ran; }));
  }
}

TEST_P(EventLoopContract, RunAfterCountsFromNow) {
  Time due;
  timers_[0] = loop_.Post([&] {
    due = loop_.Now() + Microseconds(50);
    timers_[1] = loop_.RunAfter(Microseconds(50), [&] {
      EXPECT_TRUE(loop_.Now() >= due);
      ran_.push_back(1);
    });
  });
  RunUntilRan(1);
}

TEST_P(EventLoopContract, TimeStandsStillWhileATaskRuns) {
  timers_[0] = loop_.Post([this] {
    const Time before = loop_.Now();
    volatile int busy = 0;
    for (int i = 0; i < 100'000; ++i) busy = i;
    EXPECT_TRUE(loop_.Now() == before);
    ran_.push_back(busy > 0);
  });
  RunUntilRan(1);
}

TEST_P(EventLoopContract, TimeNeverGoesBack) {
  Time last = loop_.Now();
  for (int i = 0; i < 100; ++i) {
    timers_[i % 4] = loop_.RunAfter(Nanoseconds(i % 7), [&] {
      EXPECT_TRUE(loop_.Now() >= last);
      last = loop_.Now();
    });
    RunPosted();
  }
}

TEST_P(EventLoopContract, DroppingTheTimerCancels) {
  { const Timer dropped = loop_.Post(Note(0)); }
  timers_[1] = loop_.Post(Note(1));
  RunUntilRan(1);
  EXPECT_EQ(ran_, (Order{1}));
}

TEST_P(EventLoopContract, OverwritingTheTimerCancels) {
  timers_[0] = loop_.Post(Note(0));
  timers_[0] = loop_.Post(Note(1));
  RunUntilRan(1);
  EXPECT_EQ(ran_, (Order{1}));
}

TEST_P(EventLoopContract, AnEarlierTaskOfTheSameTimeCanCancel) {
  InATask([this] {
    timers_[0] = loop_.RunAfter(Microseconds(10), [this] { timers_[1].Cancel(); });
    timers_[1] = loop_.RunAfter(Microseconds(10), Note(1));
    timers_[2] = loop_.RunAfter(Microseconds(10), Note(2));
  });
  RunUntilRan(1);
  EXPECT_EQ(ran_, (Order{2}));
}

TEST_P(EventLoopContract, CancellingSomeOfManyLeavesTheOthersInOrder) {
  std::vector<Timer> timers(100);
  InATask([&] {
    for (int i = 0; i < 100; ++i) {
      const int when = (i * 37) % 100;
      timers[static_cast<size_t>(when)] = loop_.RunAfter(Microseconds(when), Note(when));
    }
    for (size_t i = 0; i < 100; i += 3) timers[i].Cancel();
  });
  Order expected;
  for (int i = 0; i < 100; ++i) {
    if (i % 3 != 0) expected.push_back(i);
  }
  RunUntilRan(expected.size());
  EXPECT_EQ(ran_, expected);
}

TEST_P(EventLoopContract, CancellingDestroysTheTaskAtOnce) {
  auto held = std::make_shared<int>(1);
  timers_[0] = loop_.RunAfter(Seconds(3600), [held] {});
  EXPECT_EQ(held.use_count(), 2);
  timers_[0].Cancel();
  EXPECT_EQ(held.use_count(), 1);
}

TEST_P(EventLoopContract, ATaskIsDestroyedOnceItHasRun) {
  auto held = std::make_shared<int>(1);
  timers_[0] = loop_.Post([held] {});
  RunPosted();
  EXPECT_EQ(held.use_count(), 1);
}

TEST_P(EventLoopContract, ATimerIsArmedUntilItsTaskStarts) {
  bool inside = true;
  EXPECT_FALSE(timers_[0].armed());
  timers_[0] = loop_.Post([&] { inside = timers_[0].armed(); });
  EXPECT_TRUE(timers_[0].armed());
  RunPosted();
  EXPECT_FALSE(inside);
  EXPECT_FALSE(timers_[0].armed());
}

TEST_P(EventLoopContract, ATimerThatWasCancelledIsNotArmed) {
  timers_[0] = loop_.Post(Note(0));
  timers_[0].Cancel();
  EXPECT_FALSE(timers_[0].armed());
  timers_[0].Cancel();
}

TEST_P(EventLoopContract, MovingATimerMovesTheRight) {
  Timer from = loop_.Post(Note(0));
  Timer to(std::move(from));
  EXPECT_FALSE(from.armed());  // NOLINT(bugprone-use-after-move): what is promised
  EXPECT_TRUE(to.armed());
  from.Cancel();
  EXPECT_TRUE(to.armed());
  timers_[0] = std::move(to);
  RunUntilRan(1);
  EXPECT_EQ(ran_, (Order{0}));
}

TEST_P(EventLoopContract, AFiredTimerDoesNotCancelItsSuccessor) {
  timers_[0] = loop_.Post(Note(0));
  RunUntilRan(1);
  timers_[1] = loop_.Post(Note(1));  // likely in the same place
  timers_[0].Cancel();
  EXPECT_TRUE(timers_[1].armed());
  RunUntilRan(2);
  EXPECT_EQ(ran_, (Order{0, 1}));
}

TEST_P(EventLoopContract, ATaskMayArmItsOwnTimerAgain) {
  std::function<void()> again = [&] {
    ran_.push_back(static_cast<int>(ran_.size()));
    if (ran_.size() < 5) timers_[0] = loop_.RunAfter(Microseconds(1), [&] { again(); });
  };
  timers_[0] = loop_.Post([&] { again(); });
  RunUntilRan(5);
  EXPECT_EQ(ran_, (Order{0, 1, 2, 3, 4}));
  EXPECT_FALSE(timers_[0].armed());
}

TEST_P(EventLoopContract, ATaskMayDropTheObjectThatOwnsItsTimer) {
  struct Owner {
    Timer timer;
    int value = 7;
  };
  auto owner = std::make_unique<Owner>();
  owner->timer = loop_.Post([this, &owner] {
    owner.reset();
    ran_.push_back(1);
  });
  RunUntilRan(1);
  EXPECT_EQ(owner, nullptr);
}

TEST_P(EventLoopContract, ADroppedTaskMayOwnATimerItself) {
  auto inner = std::make_shared<Timer>(loop_.Post(Note(0)));
  timers_[0] = loop_.Post([inner] {});
  inner.reset();
  timers_[0].Cancel();
  timers_[1] = loop_.Post(Note(1));
  RunUntilRan(1);
  EXPECT_EQ(ran_, (Order{1}));
}

}  // namespace tokamak::base
