// The one lock of a NIC: its own thread takes it once for each batch of work, owners' threads for
// control calls. It is a base::Mutex with an order of who comes next.
//
// A busy NIC would retake it before a waiting owner wakes up, so the NIC queues behind waiting
// owners.
//
// A NIC's parts do not see its mutex, and no thread holds two NICs', so in the marks for clang
// (ci/thread_safety) all go by one name, kNicMutex.
#pragma once

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "lib/base/mutex.h"

namespace tokamak::verbs::soft {

// For the marks alone.
struct ABSL_LOCKABLE NicMutexName {};
inline constexpr NicMutexName kNicMutex;

// The check does not see into callbacks: a lambda states itself what it requires.
#define REQUIRES_NIC_MUTEX ABSL_EXCLUSIVE_LOCKS_REQUIRED(::tokamak::verbs::soft::kNicMutex)
#define GUARDED_BY_NIC_MUTEX ABSL_GUARDED_BY(::tokamak::verbs::soft::kNicMutex)

class NicMutex final {
 public:
  // Owners' threads: NicLock.
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION(kNicMutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    owners_waiting_.fetch_add(1, std::memory_order_relaxed);
    turnstile_.Lock();
    mutex_.Lock();
    turnstile_.Unlock();
    owners_waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION(kNicMutex) ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }

  // The NIC's thread. A long batch looks at owner_waits() and ends early.
  void LockForNic() ABSL_EXCLUSIVE_LOCK_FUNCTION(kNicMutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!owner_waits()) {
      mutex_.Lock();
      return;
    }
    turnstile_.Lock();  // the waiting owner holds it until it has the mutex
    mutex_.Lock();
    turnstile_.Unlock();
  }

  bool owner_waits() const { return owners_waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  base::Mutex turnstile_;
  base::Mutex mutex_;
  std::atomic<int> owners_waiting_{0};
};

// For owners' threads.
class ABSL_SCOPED_LOCKABLE NicLock final {
 public:
  explicit NicLock(NicMutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(kNicMutex) : mutex_(mutex) { mutex_.Lock(); }
  ~NicLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  NicLock(const NicLock&) = delete;
  NicLock& operator=(const NicLock&) = delete;

 private:
  NicMutex& mutex_;
};

}  // namespace tokamak::verbs::soft
