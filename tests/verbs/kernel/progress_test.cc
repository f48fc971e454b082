#include "lib/verbs/kernel/progress.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "gtest/gtest.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::verbs::kernel {
namespace {

// The network is an eventfd, whose events the loop counts, and tells through a channel.
class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() : progress_(loop_, [this] { CountRound(); }) {
    const Progress::Hold hold(progress_);
    watch_ = loop_.Watch(network_.get(), EPOLLIN, [this](uint32_t) {
      uint64_t count = 0;
      if (read(network_.get(), &count, sizeof(count)) < 0) return;
      ran_on_ = std::this_thread::get_id();
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        arrived_ += count;
      }
      changed_.notify_all();
      Write(channel_);
    });
  }
  ~ProgressTest() override {
    stopped_at_ = 0;
    progress_.Stop();
    watch_.Reset();
  }

  static void Write(const os::FileDescriptor& to) {
    const uint64_t one = 1;
    ASSERT_EQ(write(to.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  }
  bool Comes(uint64_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kLongest, [&] { return arrived_ >= count; });
  }

  void CountRound() {
    if (on_round_) on_round_();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++rounds_[std::this_thread::get_id()];
    }
    changed_.notify_all();
  }
  uint64_t RoundsOf(std::thread::id thread) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return rounds_[thread];
  }
  // How often this thread has gone to sleep.
  static int64_t Sleeps() {
    rusage usage{};
    EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
  }
  // A wait that a timer ends.
  void WaitFor(base::Duration duration) {
    base::Timer timer;
    {
      const Progress::Hold hold(progress_);
      timer = loop_.RunAfter(duration, [this] { Write(channel_); });
    }
    EXPECT_EQ(progress_.WaitReadable(channel_.get()), 0);
    uint64_t count = 0;
    ASSERT_EQ(read(channel_.get(), &count, sizeof(count)), static_cast<ssize_t>(sizeof(count)));
  }
  // A thread that waits runs a round first, under the lock of Progress, and gives that back when it
  // sleeps.
  void AwaitRoundOf(std::thread::id thread, uint64_t after) {
    std::unique_lock<std::mutex> lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kLongest, [&] { return rounds_[thread] > after; }));
  }

  static constexpr std::chrono::seconds kLongest{10};

  // The real clock, until it is stopped.
  static uint64_t Clock() {
    const uint64_t stopped = stopped_at_.load();
    return stopped != 0 ? stopped : os::EpollLoop::MonotonicNanoseconds();
  }
  static inline std::atomic<uint64_t> stopped_at_{0};

  const os::FileDescriptor network_{eventfd(0, EFD_NONBLOCK)};
  const os::FileDescriptor channel_{eventfd(0, EFD_NONBLOCK)};
  os::EpollLoop loop_{os::Detection::Event(), &Clock};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> on_round_;
  std::map<std::thread::id, uint64_t> rounds_;
  uint64_t arrived_ = 0;
  std::thread::id ran_on_;
  os::FdWatch watch_;
  Progress progress_;
};

TEST_F(ProgressTest, PacketsThatComeWhileTheProgramIsElsewhereAreHandled) {
  Write(network_);
  EXPECT_TRUE(Comes(1));
  EXPECT_NE(ran_on_, std::this_thread::get_id());
}

TEST_F(ProgressTest, APollHandlesPacketsOnTheCallersThread) {
  progress_.Stop();
  Write(network_);
  progress_.Poll();
  EXPECT_EQ(arrived_, 1u);
  EXPECT_EQ(ran_on_, std::this_thread::get_id());
}

TEST_F(ProgressTest, AWaiterIsWokenByTheNetworkAndDoesItsWork) {
  progress_.Stop();
  const std::thread::id waiter = std::this_thread::get_id();
  std::thread peer([this, waiter, before = RoundsOf(waiter)] {
    AwaitRoundOf(waiter, before);
    Write(network_);
  });
  EXPECT_EQ(progress_.WaitReadable(channel_.get()), 0);
  EXPECT_EQ(ran_on_, std::this_thread::get_id());
  peer.join();
}

TEST_F(ProgressTest, PacketsThatComeSoonAreFoundWithoutSleeping) {
  progress_.Stop();
  stopped_at_ = Clock();  // so that soon is now, however busy this machine is
  int rounds = 0;
  on_round_ = [&] {
    if (++rounds == 3) Write(network_);
  };
  const int64_t sleeps = Sleeps();
  EXPECT_EQ(progress_.WaitReadable(channel_.get()), 0);
  EXPECT_EQ(arrived_, 1u);
  EXPECT_EQ(Sleeps(), sleeps);
}

// As it ends a read() of the kernel's: a program bounds its wait by alarm().
TEST_F(ProgressTest, ASignalThatComesBeforeTheSleepEndsTheWait) {
  progress_.Stop();
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  int rounds = 0;
  on_round_ = [&] {
    if (++rounds == 1) raise(SIGUSR1);
  };
  base::Timer rescue;  // whoever misses it would wait for ever
  {
    const Progress::Hold hold(progress_);
    rescue = loop_.RunAfter(base::Seconds(5), [this] { Write(channel_); });
  }
  rounds = 0;
  EXPECT_EQ(progress_.WaitReadable(channel_.get()), EINTR);
  EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST_F(ProgressTest, ALongWaitSleepsAtOnce) {
  progress_.Stop();
  const std::thread::id self = std::this_thread::get_id();
  WaitFor(base::Milliseconds(20));
  const uint64_t before = RoundsOf(self);
  const int64_t sleeps = Sleeps();
  WaitFor(base::Milliseconds(20));
  EXPECT_LE(RoundsOf(self) - before, 8u);
  EXPECT_GE(Sleeps(), sleeps + 1);
}

TEST_F(ProgressTest, ADoorbellHasItsWorkDoneAndLooksAtNothingElse) {
  progress_.Stop();
  Write(network_);
  int ran = 0;
  const std::unique_ptr<base::Signal> signal = loop_.MakeSignal([&] { ++ran; });
  const uint64_t looks = loop_.waits();
  {
    const Progress::Doorbell doorbell(progress_);
    signal->Raise();
    EXPECT_EQ(ran, 0);
  }
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(loop_.waits(), looks);
  EXPECT_EQ(arrived_, 0u);
}

TEST_F(ProgressTest, AThreadStandsInForAProgramThatStopsPolling) {
  for (int i = 0; i < 1000; ++i) progress_.Poll();
  Write(network_);
  EXPECT_TRUE(Comes(1));
}

TEST_F(ProgressTest, AThreadStandsInForAProgramThatStopsWaiting) {
  for (uint64_t i = 1; i <= 20; ++i) {
    std::thread peer([this] { Write(network_); });
    EXPECT_EQ(progress_.WaitReadable(channel_.get()), 0);
    peer.join();
    uint64_t count = 0;
    ASSERT_EQ(read(channel_.get(), &count, sizeof(count)), static_cast<ssize_t>(sizeof(count)));
    EXPECT_TRUE(Comes(i));
  }
  Write(network_);
  EXPECT_TRUE(Comes(21));
}

TEST_F(ProgressTest, TimersRingWhicheverThreadSetsThem) {
  std::promise<void> due;
  base::Timer timer;
  {
    const Progress::Hold hold(progress_);
    timer = loop_.RunAfter(base::Milliseconds(5), [&] { due.set_value(); });
  }
  EXPECT_EQ(due.get_future().wait_for(kLongest), std::future_status::ready);
}

// A request for a connection that is lost is sent again, though one thread connects and another one
// already waits for what comes of it.
TEST_F(ProgressTest, ATimerSetWhileAThreadWaitsRings) {
  base::Timer timer;
  std::thread waiter([this] { EXPECT_EQ(progress_.WaitReadable(channel_.get()), 0); });
  AwaitRoundOf(waiter.get_id(), 0);
  {
    const Progress::Hold hold(progress_);
    timer = loop_.RunAfter(base::Milliseconds(20), [this] { Write(channel_); });
  }
  waiter.join();
}

TEST_F(ProgressTest, ManyThreadsThatWaitAreAllWoken) {
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(progress_.WaitReadable(channel_.get()), 0);
      ++woken;
    });
  }
  Write(network_);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(woken, 4);
}

}  // namespace
}  // namespace tokamak::verbs::kernel
