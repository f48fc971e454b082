// ns-3's simulator by the clock. None of these depends on a machine being fast.
#include "sim/ns3/ns3_real_time.h"

#include <poll.h>

#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::sim {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

TEST(Ns3RealTimeTest, TasksRunNotBeforeTheClockShowsTheirTime) {
  Ns3RealTime time;
  const auto begin = Clock::now();
  std::vector<double> ran;
  const auto note = [&] { ran.push_back(MillisecondsSince(begin)); };
  const base::Timer first = time.loop().RunAfter(base::Milliseconds(20), note);
  const base::Timer second = time.loop().RunAfter(base::Milliseconds(40), [&] {
    note();
    time.Stop();
  });
  time.Run();
  ASSERT_EQ(ran.size(), 2u);
  EXPECT_GE(ran[0], 19.9);
  EXPECT_GE(ran[1], 39.9);
}

TEST(Ns3RealTimeTest, TasksOfOtherThreadsRunInOrderOnTheLoopsThreadAtPresentTimes) {
  Ns3RealTime time;
  constexpr int kTasks = 1000;
  const std::thread::id main = std::this_thread::get_id();
  std::vector<int> ran;
  base::Time last;
  std::thread other([&] {
    for (int i = 0; i < kTasks; ++i) {
      time.Hand([&, i] {
        EXPECT_EQ(std::this_thread::get_id(), main);
        EXPECT_GE(time.loop().Now(), last);
        last = time.loop().Now();
        ran.push_back(i);
      });
    }
    time.Stop();
  });
  time.Run();
  other.join();
  ASSERT_EQ(ran.size(), static_cast<size_t>(kTasks));
  for (int i = 0; i < kTasks; ++i) EXPECT_EQ(ran[static_cast<size_t>(i)], i);
}

TEST(Ns3RealTimeTest, ATaskThatTakesLongMakesTheNextOneLateByThat) {
  Ns3RealTime time;
  base::Duration lag;
  const base::Timer blocks = time.loop().RunAfter(base::Milliseconds(1), [] { poll(nullptr, 0, 50); });
  const base::Timer late = time.loop().RunAfter(base::Milliseconds(2), [&] {
    lag = time.lag();
    time.Stop();
  });
  time.Run();
  EXPECT_GE(lag, base::Milliseconds(48));
}

TEST(Ns3RealTimeTest, StopBeforeRunEndsIt) {
  Ns3RealTime time;
  time.Stop();
  time.Run();
}

}  // namespace
}  // namespace tokamak::sim
