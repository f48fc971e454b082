#include "lib/os/loop_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tokamak::os {
namespace {

TEST(LoopThreadTest, CallsRunOnItsThreadAndHaveRunWhenTheyReturn) {
  LoopThread thread({"engine"});
  std::thread::id inside;
  thread.CallOn([&] { inside = std::this_thread::get_id(); });
  EXPECT_NE(inside, std::thread::id());
  EXPECT_NE(inside, std::this_thread::get_id());
}

TEST(LoopThreadTest, ItsThreadHasItsNameAndNoUnixSignals) {
  LoopThread thread({"a name longer than fifteen bytes"});
  char name[32] = {};
  sigset_t blocked;
  thread.CallOn([&] {
    pthread_getname_np(pthread_self(), name, sizeof(name));
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  });
  EXPECT_EQ(std::string(name), "a name longer t");
  EXPECT_TRUE(sigismember(&blocked, SIGTERM));
  sigset_t ours;
  pthread_sigmask(SIG_SETMASK, nullptr, &ours);
  EXPECT_FALSE(sigismember(&ours, SIGTERM));
}

TEST(LoopThreadTest, ItCanBeBoundToAProcessor) {
  LoopThread thread({"bound", {0}});
  cpu_set_t cpus;
  thread.CallOn([&] { pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus); });
  EXPECT_EQ(CPU_COUNT(&cpus), 1);
}

TEST(LoopThreadTest, AMissingProcessorIsNoHindrance) {
  LoopThread thread({"unbound", {CPU_SETSIZE - 1}});
  int ran = 0;
  thread.CallOn([&] { ran = 1; });
  EXPECT_EQ(ran, 1);
}

TEST(LoopThreadTest, ACallInsideACallRunsAtOnce) {
  LoopThread thread({"engine"});
  int ran = 0;
  thread.CallOn([&] { thread.CallOn([&] { ++ran; }); });
  EXPECT_EQ(ran, 1);
}

TEST(LoopThreadTest, TasksThatACallPostsRunOnTheLoop) {
  for (const Detection detection : {Detection::Busy(), Detection::Event()}) {
    LoopThread thread({"engine"}, detection);
    base::Timer timer;
    std::mutex mutex;
    std::condition_variable changed;
    bool ran = false;
    thread.CallOn([&] {
      timer = thread.loop().RunAfter(base::Microseconds(100), [&] {
        const std::lock_guard<std::mutex> lock(mutex);
        ran = true;
        changed.notify_one();
      });
    });
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return ran; });
    lock.unlock();
    thread.CallOn([&] { timer.Cancel(); });
  }
}

TEST(LoopThreadTest, ManyThreadsCall) {
  LoopThread thread({"engine"});
  int count = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int j = 0; j < 200; ++j) thread.CallOn([&] { ++count; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  thread.CallOn([&] { EXPECT_EQ(count, 800); });
}

TEST(LoopThreadTest, ItsLoopBelongsToTheCallerOnceStopped) {
  LoopThread thread({"engine"});
  bool ran = false;
  base::Timer timer;
  thread.CallOn([&] { timer = thread.loop().RunAfter(base::Seconds(3600), [&] { ran = true; }); });
  thread.Stop();
  thread.Stop();
  EXPECT_TRUE(timer.armed());
  thread.CallOn([&] { timer.Cancel(); });
  EXPECT_FALSE(ran);
}

TEST(LoopThreadTest, StoppingFromItsOwnThreadIsACheck) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        LoopThread thread({"engine"});
        thread.CallOn([&] { thread.Stop(); });
      },
      "own end");
}

}  // namespace
}  // namespace tokamak::os
