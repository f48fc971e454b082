// Pollers of a loop: their work is found in every mode, and none is missed between the last look
// and the sleep.
#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "tests/os/one_epoll_loop.h"

namespace tokamak::os {
namespace {

using EpollPollerTest = OneEpollLoop;

INSTANTIATE_TEST_SUITE_P(Modes, EpollPollerTest, kModes, ModeName);

TEST_P(EpollPollerTest, APollerFindsWorkThatIsThere) {
  const PollerHandle polled = loop_.AddPoller(poller_);
  poller_.Arrive();
  EXPECT_TRUE(RunUntil([this] { return poller_.work == 0; }));
}

TEST_P(EpollPollerTest, APollerFindsWorkThatArrivesWhileItIsArmed) {
  loop_.SetDetection(Detection::Event());
  const PollerHandle polled = loop_.AddPoller(poller_);
  int polls = 0;
  poller_.on_arm = [&] {  // too late for the round, too early for an event
    if (poller_.arms != 1) return;
    poller_.armed = false;
    ++poller_.work;
    polls = poller_.polls;
  };
  EXPECT_TRUE(RunUntil([this] { return poller_.arms > 0; }));
  EXPECT_EQ(poller_.work, 0);
  EXPECT_EQ(poller_.polls, polls + 1);
}

TEST_P(EpollPollerTest, APollersEventEndsTheSleep) {
  const PollerHandle polled = loop_.AddPoller(poller_);
  std::thread other([&] {
    for (int i = 0; i < 50; ++i) {
      poller_.Arrive();
      while (poller_.work != 0) std::this_thread::yield();
    }
    loop_.Stop();
  });
  loop_.Run();
  other.join();
}

TEST_P(EpollPollerTest, ABusyLoopNeverArms) {
  const PollerHandle polled = loop_.AddPoller(poller_);
  RunFor(base::Milliseconds(1));
  if (GetParam().mode == Detection::Mode::kBusy) {
    EXPECT_EQ(poller_.arms, 0);
  } else {
    EXPECT_GT(poller_.arms, 0);
  }
}

TEST_P(EpollPollerTest, APollersHandleMayBeDroppedInItsPoll) {
  PollerHandle polled = loop_.AddPoller(poller_);
  FakePoller other;
  const PollerHandle other_polled = loop_.AddPoller(other);
  poller_.on_poll = [&] { polled.Reset(); };
  KeepGoing();
  EXPECT_TRUE(RunUntil([&] { return other.polls > 3; }));
  EXPECT_EQ(poller_.polls, 1);
  polled = loop_.AddPoller(poller_);
  EXPECT_TRUE(RunUntil([&] { return poller_.polls > 1; }));
}

TEST_P(EpollPollerTest, APollMayAddAPoller) {
  FakePoller other;
  PollerHandle other_polled;
  const PollerHandle polled = loop_.AddPoller(poller_);
  poller_.on_poll = [&] {
    if (poller_.polls == 1) other_polled = loop_.AddPoller(other);
  };
  KeepGoing();
  EXPECT_TRUE(RunUntil([&] { return other.polls > 1 && poller_.polls > 1; }));
}

TEST_P(EpollPollerTest, APollerWithoutADescriptorIsWokenByASignal) {
  class SignalPoller final : public Poller {
   public:
    explicit SignalPoller(EpollLoop& loop) : signal(loop.MakeSignal([] {})) {}
    bool Poll() override { return work.exchange(0) > 0; }
    void Arm() override { armed = true; }
    int descriptor() const override { return -1; }
    void Arrive() {
      ++work;
      if (armed.exchange(false)) signal->Raise();
    }
    std::atomic<int> work{0};
    std::atomic<bool> armed{false};
    const std::unique_ptr<base::Signal> signal;
  };
  SignalPoller poller(loop_);
  const PollerHandle polled = loop_.AddPoller(poller);
  std::thread other([&] {
    for (int i = 0; i < 50; ++i) {
      poller.Arrive();
      while (poller.work != 0) std::this_thread::yield();
    }
    loop_.Stop();
  });
  loop_.Run();
  other.join();
}

}  // namespace
}  // namespace tokamak::os
