// The one lock of a NIC: its own thread takes it once for each batch of work, owners' threads for
// control calls. It is a base::Mutex with an order of who comes next.
//
// A busy NIC would take it again and again before a waiting owner wakes up, so the NIC queues
// behind waiting owners.
//
// The parts of a NIC do not see its mutex, and no thread holds two NICs' at once. So in the marks
// that clang checks (ci/thread_safety) all of these mutexes have one name, kNicMutex.
#pragma once

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "lib/base/mutex.h"

namespace tokamak::verbs::soft {

// For the marks alone.
struct ABSL_LOCKABLE NicMutexName {};
inline constexpr NicMutexName kNicMutex;

// Marks a function whose caller holds the NIC's mutex. The check does not see into callbacks: a
// lambda must state itself what it requires.
#define REQUIRES_NIC_MUTEX ABSL_EXCLUSIVE_LOCKS_REQUIRED(::tokamak::verbs::soft::kNicMutex)
#define GUARDED_BY_NIC_MUTEX ABSL_GUARDED_BY(::tokamak::verbs::soft::kNicMutex)

class NicMutex final {
 public:
  // For owners' threads, by NicLock.
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION(kNicMutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    owners_waiting_.fetch_add(1, std::memory_order_relaxed);
    turnstile_.Lock();
    mutex_.Lock();
    turnstile_.Unlock();
    owners_waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION(kNicMutex) ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }

  // For the NIC's thread. A batch that may be long looks at owner_waits() and ends early.
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

// Holds the mutex for an owner's thread.
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
