#include "lib/base/mutex.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "gtest/gtest.h"

namespace tokamak::base {
namespace {

using Clock = std::chrono::steady_clock;

// Whether another thread can have the mutex now.
bool IsFree(Mutex& mutex) {
  bool free = false;
  std::thread([&] {
    if (!mutex.TryLock()) return;
    free = true;
    mutex.Unlock();
  }).join();
  return free;
}

TEST(MutexTest, IsHeldForAsLongAsItsLockLives) {
  Mutex mutex;
  {
    const MutexLock lock(mutex);
    EXPECT_FALSE(IsFree(mutex));
  }
  EXPECT_TRUE(IsFree(mutex));
}

TEST(MutexTest, RunsACallUnlockedAndIsHeldAfter) {
  Mutex mutex;
  const MutexLock lock(mutex);
  EXPECT_TRUE(mutex.RunUnlocked([&] { return IsFree(mutex); }));
  EXPECT_FALSE(IsFree(mutex));
}

TEST(MutexTest, IsHeldAgainWhereACallIsUnwound) {
  Mutex mutex;
  const MutexLock lock(mutex);
  EXPECT_THROW(mutex.RunUnlocked([] { throw std::runtime_error("over"); }), std::runtime_error);
  EXPECT_FALSE(IsFree(mutex));
}

TEST(CondVarTest, WaitEndsWithTheMutexWhenNotified) {
  Mutex mutex;
  CondVar changed;
  bool done = false;
  std::thread other;
  {
    const MutexLock lock(mutex);
    other = std::thread([&] {
      const MutexLock theirs(mutex);
      done = true;
      changed.NotifyAll();
    });
    while (!done) changed.Wait(mutex);
    EXPECT_FALSE(IsFree(mutex));
  }
  other.join();
}

TEST(CondVarTest, WaitUntilEndsWithTheMutexAtItsDeadline) {
  Mutex mutex;
  CondVar changed;
  const MutexLock lock(mutex);
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(5);
  while (changed.WaitUntil(mutex, deadline)) {
  }
  EXPECT_GE(Clock::now(), deadline);
  EXPECT_FALSE(IsFree(mutex));
}

TEST(CondVarTest, WaitUntilADeadlineThatHasPassedEndsAtOnce) {
  Mutex mutex;
  CondVar changed;
  const MutexLock lock(mutex);
  EXPECT_FALSE(changed.WaitUntil(mutex, Clock::now()));
}

}  // namespace
}  // namespace tokamak::base
