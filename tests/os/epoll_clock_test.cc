// How often a loop looks at the clock, and how late that may make it.
#include <cstdint>
#include <functional>
#include <memory>

#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "tests/os/one_epoll_loop.h"

namespace tokamak::os {
namespace {

constexpr int kRounds = 1600;
constexpr uint64_t kSecond = 1'000'000'000;

uint64_t g_nanoseconds;  // of all tests: it never goes back
int g_looks;

uint64_t Clock() {
  ++g_looks;
  return g_nanoseconds;
}

class EpollClockTest : public testing::Test {
 protected:
  // Runs `rounds` rounds, then a second goes by unnoticed, then runs until `done`.
  void RunPastASecond(int rounds, const std::function<bool()>& done) {
    passed_at_ = poller_.polls + rounds;
    const auto pass = [&] {
      if (poller_.polls == passed_at_) g_nanoseconds += kSecond;
      return poller_.polls >= passed_at_ && done();
    };
    ASSERT_TRUE(loop_.RunUntil(pass, loop_.Now() + base::Seconds(3600)));
  }
  void RunFor(int rounds) {
    const int end = poller_.polls + rounds;
    ASSERT_TRUE(loop_.RunUntil([&] { return poller_.polls >= end; }, loop_.Now() + base::Seconds(3600)));
  }

  EpollLoop loop_{Detection::Busy(), &Clock};
  FakePoller poller_;
  const PollerHandle polled_ = loop_.AddPoller(poller_);
  int passed_at_ = 0;  // polls
};

TEST_F(EpollClockTest, ASpinningLoopReadsTheClockOnceInManyIdleRounds) {
  const base::Timer timer = loop_.RunAfter(base::Seconds(1000), [] { FAIL(); });
  g_looks = 0;
  RunFor(kRounds);
  EXPECT_GE(g_looks, kRounds / EpollLoop::kIdleRoundsPerClock);
  EXPECT_LE(g_looks, kRounds / EpollLoop::kIdleRoundsPerClock + 4);  // to begin with, and ours
}

TEST_F(EpollClockTest, ATimerIsLateByNoMoreRoundsThanThat) {
  for (int offset = 1; offset <= EpollLoop::kIdleRoundsPerClock; ++offset) {
    int ran = 0;
    const base::Timer timer = loop_.RunAfter(base::Seconds(1), [&] { ran = poller_.polls; });
    RunPastASecond(kRounds + offset, [&] { return ran != 0; });
    EXPECT_GE(ran, passed_at_);
    EXPECT_LE(ran, passed_at_ + EpollLoop::kIdleRoundsPerClock);
  }
}

TEST_F(EpollClockTest, AnAdaptiveLoopStopsSpinningAsSoon) {
  loop_.SetDetection(Detection::Adaptive(base::Seconds(1)));
  int slept = 0;
  poller_.on_arm = [&] {
    slept = poller_.polls;
    poller_.Arrive();  // ends the sleep
  };
  RunFor(1);  // there was no work yet
  RunPastASecond(kRounds, [&] { return slept > passed_at_; });
  EXPECT_LE(slept, passed_at_ + EpollLoop::kIdleRoundsPerClock + 1);
}

TEST_F(EpollClockTest, WorkThatIsFoundBetweenTwoLooksKnowsTheTime) {
  for (int offset = 1; offset <= EpollLoop::kIdleRoundsPerClock; ++offset) {
    const base::Time then = loop_.Now() + base::Seconds(1);
    int asked = 0;
    poller_.on_poll = [&] {
      if (poller_.polls <= passed_at_) return;
      ++asked;
      EXPECT_EQ(loop_.Now(), then);
    };
    RunPastASecond(offset, [&] { return asked > 0; });
    poller_.on_poll = nullptr;
  }
}

TEST_F(EpollClockTest, AnAwakeLoopReadsTheClockOnceInARoundOfTasks) {
  int runs = 0;
  const auto signal = loop_.MakeSignal([&] { ++runs; });
  const auto other = loop_.MakeSignal([&] { signal->Raise(); });
  g_looks = 0;
  for (int i = 0; i < kRounds; ++i) {
    other->Raise();
    RunFor(2);
  }
  EXPECT_EQ(runs, kRounds);
  EXPECT_LE(g_looks, 4 * kRounds);  // two rounds, and RunFor's own two
}

// On a machine so slow that each task takes a millisecond.
TEST_F(EpollClockTest, AShortChainOfTasksDoesNotLookAtDescriptorsInBetween) {
  int left = 0;
  std::unique_ptr<base::Signal> signal;
  signal = loop_.MakeSignal([&] {
    g_nanoseconds += 1'000'000;
    if (--left > 0) signal->Raise();
  });
  const auto looks_in = [&](int tasks) {
    left = tasks;
    const uint64_t before = loop_.waits();
    signal->Raise();
    EXPECT_TRUE(loop_.RunUntil([&] { return left == 0; }, loop_.Now() + base::Seconds(3600)));
    return loop_.waits() - before;
  };
  looks_in(1);
  EXPECT_LE(looks_in(3), 1u);
  EXPECT_GE(looks_in(400), 50u) << "descriptors are not starved";
  EXPECT_LE(looks_in(400), 101u);
}

TEST_F(EpollClockTest, ALoopThatSleepsReadsTheClockTwiceForEachEvent) {
  loop_.SetDetection(Detection::Event());
  const Event event;
  int events = 0;
  const FdWatch watch = loop_.Watch(event.fd(), EPOLLIN, [&](uint32_t) { ++events; });
  event.Set();  // and never taken
  g_looks = 0;
  ASSERT_TRUE(loop_.RunUntil([&] { return events == kRounds; }, loop_.Now() + base::Seconds(3600)));
  EXPECT_LE(g_looks, 2 * kRounds + 2);
}

}  // namespace
}  // namespace tokamak::os
