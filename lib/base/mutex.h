// Mutex, MutexLock and CondVar: the standard library's, with attributes by which clang checks that
// guarded data is touched under its mutex (ci/thread_safety).
//
//   base::Mutex mutex_;
//   base::CondVar changed_;
//   bool done_ ABSL_GUARDED_BY(mutex_) = false;
//   void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
//
//   const base::MutexLock lock(mutex_);
//   while (!done_) changed_.Wait(mutex_);
//
// A wait is a loop, since clang does not see that a predicate runs with the mutex. For the same
// reason a lambda that touches guarded data states itself what it requires.
//
// Logic has no locks except those that ci/check_includes.py names.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace tokamak::base {

class ABSL_LOCKABLE Mutex final {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

  // Returns false, without waiting, when another thread has it.
  [[nodiscard]] bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

  // Runs `call` without the mutex and takes it again, even if the thread is cancelled
  // (pthread_cancel(3)) in the call.
  template <typename Call>
  auto RunUnlocked(const Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    const Release release(mutex_);
    return call();
  }

  // Asserts to clang, where it cannot see so, that this thread holds the mutex. Checks nothing.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class CondVar;

  class Release final {
   public:
    explicit Release(std::mutex& mutex) : mutex_(mutex) { mutex_.unlock(); }
    ~Release() { mutex_.lock(); }
    Release(const Release&) = delete;
    Release& operator=(const Release&) = delete;

   private:
    std::mutex& mutex_;
  };

  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock final {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar final {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  // Sleeps without the mutex until notified, or spuriously. Returns with it.
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Borrowed borrowed(mutex.mutex_);
    notified_.wait(borrowed.lock);
  }

  // The same until `deadline` at the latest. Returns false once that has passed.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Borrowed borrowed(mutex.mutex_);
    return notified_.wait_until(borrowed.lock, deadline) == std::cv_status::no_timeout;
  }

  void NotifyOne() { notified_.notify_one(); }
  void NotifyAll() { notified_.notify_all(); }

 private:
  // A mutex as the standard library's waits want it. It stays locked at the end, even if the thread
  // is cancelled in the wait.
  struct Borrowed {
    explicit Borrowed(std::mutex& mutex) : lock(mutex, std::adopt_lock) {}
    ~Borrowed() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable notified_;
};

}  // namespace tokamak::base
