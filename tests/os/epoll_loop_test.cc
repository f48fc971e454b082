// The real loop keeps the promises of every loop, and its own: it runs and stops, watches
// descriptors and starves nobody.
#include "lib/os/epoll_loop.h"

#include <poll.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/base/event_loop_thread_contract.h"
#include "tests/os/one_epoll_loop.h"

namespace tokamak::base {
namespace {

class EpollHarness final : public LoopHarness {
 public:
  explicit EpollHarness(os::Detection detection) : loop_(detection) {}
  EventLoop& loop() override { return loop_; }
  bool RunUntil(const std::function<bool()>& done) override { return loop_.RunUntil(done, loop_.Now() + Seconds(60)); }

 private:
  os::EpollLoop loop_;
};

// The loop as whoever has threads of its own runs it.
class LentHarness final : public LoopHarness {
 public:
  EventLoop& loop() override { return loop_; }
  bool RunUntil(const std::function<bool()>& done) override {
    const Time limit = loop_.Now() + Seconds(60);
    while (!done() && loop_.Now() < limit) {
      if (loop_.RunDue()) continue;
      const Duration most = std::min(loop_.PrepareToWait(), limit - loop_.Now());
      pollfd one{loop_.descriptor(), POLLIN, 0};
      poll(&one, 1, static_cast<int>((most + Milliseconds(1)).milliseconds()));
    }
    return done();
  }

 private:
  os::EpollLoop loop_;
};

LoopCase With(std::string name, os::Detection detection) {
  return {std::move(name), [detection] { return std::make_unique<EpollHarness>(detection); }};
}

const auto kModes = testing::Values(With("Busy", os::Detection::Busy()), With("Event", os::Detection::Event()),
                                    With("Adaptive", os::Detection::Adaptive(Microseconds(20))),
                                    LoopCase{"Lent", [] { return std::make_unique<LentHarness>(); }});

INSTANTIATE_TEST_SUITE_P(EpollLoop, EventLoopContract, kModes, LoopCaseName);
INSTANTIATE_TEST_SUITE_P(EpollLoop, EventLoopThreadContract, kModes, LoopCaseName);

}  // namespace
}  // namespace tokamak::base

namespace tokamak::os {
namespace {

using base::Microseconds;
using base::Milliseconds;
using base::Seconds;
using base::Time;
using base::Timer;

class EpollLoopTest : public OneEpollLoop {
 protected:
  Event event_, other_event_;
  int count_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Modes, EpollLoopTest, kModes, ModeName);

TEST_P(EpollLoopTest, RunReturnsAfterStop) {
  timer_ = loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
  timer_ = loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
}

TEST_P(EpollLoopTest, AStopBeforeRunCounts) {
  loop_.Stop();
  loop_.Run();
}

TEST_P(EpollLoopTest, AnotherThreadStopsALoopWithNothingToDo) {
  for (int i = 0; i < 50; ++i) {
    std::thread other([this] { loop_.Stop(); });
    loop_.Run();
    other.join();
  }
}

TEST_P(EpollLoopTest, RunUntilGivesUpAtItsLimit) {
  const Time limit = loop_.Now() + Milliseconds(3);
  EXPECT_FALSE(loop_.RunUntil([] { return false; }, limit));
  EXPECT_TRUE(loop_.Now() >= limit);
}

TEST_P(EpollLoopTest, RunUntilAsksBeforeItRunsAnything) {
  timer_ = loop_.Post([this] { ++count_; });
  EXPECT_TRUE(loop_.RunUntil([] { return true; }, loop_.Now() + Seconds(1)));
  EXPECT_EQ(count_, 0);
}

TEST_P(EpollLoopTest, ATaskCannotRunItsLoop) {
  timer_ = loop_.Post([this] { loop_.RunUntil([] { return false; }, loop_.Now() + Seconds(1)); });
  EXPECT_DEATH(RunFor(Milliseconds(1)), "must not run its loop");
}

TEST_P(EpollLoopTest, TheModeCanBeChanged) {
  for (const Detection mode : {Detection::Event(), Detection::Busy(), Detection::Adaptive(Milliseconds(1))}) {
    loop_.SetDetection(mode);
    EXPECT_EQ(loop_.detection().mode, mode.mode);
    RunFor(Microseconds(100));
  }
}

TEST_P(EpollLoopTest, AReadableDescriptorRunsItsCallback) {
  const FdWatch watch = loop_.Watch(event_.fd(), EPOLLIN, [this](uint32_t events) {
    EXPECT_EQ(events, uint32_t{EPOLLIN});
    EXPECT_TRUE(event_.Take());
    ++count_;
  });
  RunFor(Microseconds(100));
  EXPECT_EQ(count_, 0);
  event_.Set();
  EXPECT_TRUE(RunUntil([this] { return count_ == 1; }));
  RunFor(Microseconds(100));
  EXPECT_EQ(count_, 1);
}

TEST_P(EpollLoopTest, ADescriptorIsReportedUntilItIsRead) {
  const FdWatch watch = loop_.Watch(event_.fd(), EPOLLIN, [this](uint32_t) {
    if (++count_ == 3) event_.Take();
  });
  event_.Set();
  EXPECT_TRUE(RunUntil([this] { return count_ == 3; }));
  RunFor(Microseconds(100));
  EXPECT_EQ(count_, 3);
}

TEST_P(EpollLoopTest, ADroppedWatchRunsNoMore) {
  FdWatch watch = loop_.Watch(event_.fd(), EPOLLIN, [this](uint32_t) { ++count_; });
  event_.Set();
  EXPECT_TRUE(watch.active());
  watch.Reset();
  EXPECT_FALSE(watch.active());
  RunFor(Milliseconds(1));
  EXPECT_EQ(count_, 0);
}

TEST_P(EpollLoopTest, ADroppedWatchRunsNoMoreEvenInTheSameBatch) {
  FdWatch first, second;
  const auto callback = [&](uint32_t) {
    ++count_;
    first.Reset();
    second.Reset();
  };
  first = loop_.Watch(event_.fd(), EPOLLIN, callback);
  second = loop_.Watch(other_event_.fd(), EPOLLIN, callback);
  event_.Set();
  other_event_.Set();
  EXPECT_TRUE(RunUntil([this] { return count_ > 0; }));
  RunFor(Milliseconds(1));
  EXPECT_EQ(count_, 1);
}

TEST_P(EpollLoopTest, AWatchMadeInThePlaceOfADroppedOneGetsNoneOfItsEvents) {
  const Event quiet;
  FdWatch first, second, third;
  const auto callback = [&](uint32_t) {
    ++count_;
    first.Reset();
    second.Reset();
    third = loop_.Watch(quiet.fd(), EPOLLIN, [](uint32_t) { FAIL(); });
  };
  first = loop_.Watch(event_.fd(), EPOLLIN, callback);
  second = loop_.Watch(other_event_.fd(), EPOLLIN, callback);
  event_.Set();
  other_event_.Set();
  EXPECT_TRUE(RunUntil([this] { return count_ > 0; }));
  RunFor(Milliseconds(1));
}

TEST_P(EpollLoopTest, ACallbacksCapturesLiveUntilItReturns) {
  FdWatch watch;
  auto held = std::make_shared<int>(7);
  watch = loop_.Watch(event_.fd(), EPOLLIN, [&, held](uint32_t) {
    watch.Reset();
    count_ = *held;
  });
  event_.Set();
  EXPECT_TRUE(RunUntil([this] { return count_ == 7; }));
  EXPECT_EQ(held.use_count(), 1);
}

TEST_P(EpollLoopTest, ACallbackMayWatchManyMore) {
  std::vector<FdWatch> watches;
  std::vector<Event> events(100);
  watches.push_back(loop_.Watch(event_.fd(), EPOLLIN, [&](uint32_t) {
    event_.Take();
    for (const Event& event : events) {
      event.Set();
      watches.push_back(loop_.Watch(event.fd(), EPOLLIN, [&](uint32_t) {
        event.Take();
        ++count_;
      }));
    }
  }));
  event_.Set();
  EXPECT_TRUE(RunUntil([this] { return count_ == 100; }));
  watches.clear();
}

TEST_P(EpollLoopTest, TheEventsOfAWatchCanBeChanged) {
  FdWatch watch = loop_.Watch(event_.fd(), 0, [this](uint32_t events) {
    if (events & EPOLLIN) ++count_;
  });
  event_.Set();
  RunFor(Milliseconds(1));
  EXPECT_EQ(count_, 0);
  watch.SetEvents(EPOLLIN);
  EXPECT_TRUE(RunUntil([this] { return count_ > 0; }));
  watch.SetEvents(0);
  const int before = count_;
  RunFor(Milliseconds(1));
  EXPECT_EQ(count_, before);
}

TEST_P(EpollLoopTest, MovingAWatchMovesTheRight) {
  FdWatch from = loop_.Watch(event_.fd(), EPOLLIN, [this](uint32_t) {
    event_.Take();
    ++count_;
  });
  FdWatch to = std::move(from);
  EXPECT_FALSE(from.active());  // NOLINT(bugprone-use-after-move): what is promised
  event_.Set();
  EXPECT_TRUE(RunUntil([this] { return count_ == 1; }));
}

TEST_P(EpollLoopTest, ATaskThatPostsItselfForEverStarvesNobody) {
  KeepGoing();
  const FdWatch watch = loop_.Watch(event_.fd(), EPOLLIN, [this](uint32_t) {
    event_.Take();
    ++count_;
  });
  const auto signal = loop_.MakeSignal([this] { ++count_; });
  const PollerHandle polled = loop_.AddPoller(poller_);
  event_.Set();
  signal->Raise();
  EXPECT_TRUE(RunUntil([this] { return count_ == 2 && poller_.polls > 2; }));
}

TEST_P(EpollLoopTest, ASignalThatRaisesItselfForEverStarvesNobody) {
  std::unique_ptr<base::Signal> signal;
  signal = loop_.MakeSignal([&] { signal->Raise(); });
  signal->Raise();
  timer_ = loop_.RunAfter(Microseconds(50), [this] { ++count_; });
  const FdWatch watch = loop_.Watch(event_.fd(), EPOLLIN, [this](uint32_t) {
    event_.Take();
    ++count_;
  });
  event_.Set();
  EXPECT_TRUE(RunUntil([this] { return count_ == 2; }));
}

TEST_P(EpollLoopTest, NowOutsideOfTasksIsTheClock) {
  const Time before = loop_.Now();
  while (loop_.Now() == before) {
  }
  EXPECT_TRUE(loop_.Now() > before);
}

TEST_P(EpollLoopTest, TasksThatNeverRanAreDestroyedWithTheLoop) {
  auto held = std::make_shared<int>(1);
  auto loop = std::make_unique<EpollLoop>(GetParam());
  auto inner = std::make_shared<Timer>(loop->RunAfter(Seconds(1), [held] {}));
  Timer outer = loop->RunAfter(Seconds(2), [held, inner] {});
  inner.reset();
  // The timer's right goes away before the loop, as it must; the task that it held keeps the other
  // one.
  outer = Timer();
  loop.reset();
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace tokamak::os
