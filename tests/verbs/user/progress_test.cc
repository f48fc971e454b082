#include "lib/verbs/user/progress.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::verbs::user {
namespace {

// The network is an eventfd, whose events the loop counts, and tells through a channel.
class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() : progress_(loop_, [this] { ++rounds_; }) {
    const Progress::Hold hold(progress_);
    watch_ = loop_.Watch(network_.get(), EPOLLIN, [this](uint32_t) {
      uint64_t count = 0;
      if (read(network_.get(), &count, sizeof(count)) < 0) return;
      ran_on_ = std::this_thread::get_id();
      arrived_ += count;
      Write(channel_);
    });
  }
  ~ProgressTest() override {
    progress_.Stop();
    watch_.Reset();
  }

  static void Write(const os::FileDescriptor& to) {
    const uint64_t one = 1;
    ASSERT_EQ(write(to.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  }
  bool Comes(uint64_t count) {
    for (int i = 0; i < 10000 && arrived_ < count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return arrived_ >= count;
  }

  const os::FileDescriptor network_{eventfd(0, EFD_NONBLOCK)};
  const os::FileDescriptor channel_{eventfd(0, EFD_NONBLOCK)};
  os::EpollLoop loop_;
  std::atomic<uint64_t> rounds_{0};
  std::atomic<uint64_t> arrived_{0};
  std::thread::id ran_on_;
  os::FdWatch watch_;
  Progress progress_;
};

TEST_F(ProgressTest, WhatComesWhileTheProgramIsElsewhereIsDone) {
  Write(network_);
  EXPECT_TRUE(Comes(1));
  EXPECT_NE(ran_on_, std::this_thread::get_id());
}

TEST_F(ProgressTest, APollDoesItOnTheCallersThread) {
  progress_.Stop();
  Write(network_);
  progress_.Poll();
  EXPECT_EQ(arrived_, 1u);
  EXPECT_EQ(ran_on_, std::this_thread::get_id());
}

TEST_F(ProgressTest, WhoWaitsIsWokenByTheNetworkAndDoesItsWork) {
  progress_.Stop();
  std::thread peer([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Write(network_);
  });
  EXPECT_EQ(progress_.WaitReadable(channel_.get()), 0);
  EXPECT_EQ(ran_on_, std::this_thread::get_id());
  peer.join();
}

TEST_F(ProgressTest, AProgramThatStopsPollingIsStoodInFor) {
  for (int i = 0; i < 1000; ++i) progress_.Poll();
  Write(network_);
  EXPECT_TRUE(Comes(1));
}

TEST_F(ProgressTest, AProgramThatStopsWaitingIsStoodInFor) {
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

TEST_F(ProgressTest, TimersAreDueWhoeverSetsThem) {
  std::atomic<bool> due{false};
  base::Timer timer;
  {
    const Progress::Hold hold(progress_);
    timer = loop_.RunAfter(base::Milliseconds(5), [&] { due = true; });
  }
  for (int i = 0; i < 10000 && !due; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(due);
}

// A request for a connection that is lost is sent again, though one thread connects and another one
// already waits for what comes of it.
TEST_F(ProgressTest, ATimerThatIsSetWhileAThreadWaitsIsDue) {
  base::Timer timer;
  std::thread waiter([this] { EXPECT_EQ(progress_.WaitReadable(channel_.get()), 0); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
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
}  // namespace tokamak::verbs::user
