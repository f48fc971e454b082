// The one lock of a NIC: its own thread takes it once for each batch of work, owners' threads for control calls.
//
// A busy NIC would otherwise take it again and again before a waiting owner wakes up, so owners go first: while one waits,
// the NIC queues behind it. On one thread (a simulation) nobody ever waits.
#pragma once

#include <atomic>
#include <mutex>

namespace tokamak::verbs::soft {

class NicMutex final {
 public:
  // For owners' threads: std::lock_guard<NicMutex>.
  void lock() {
    owners_waiting_.fetch_add(1, std::memory_order_relaxed);
    turnstile_.lock();
    mutex_.lock();
    turnstile_.unlock();
    owners_waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  void unlock() { mutex_.unlock(); }

  // For the NIC's own thread. A batch that may be long looks at owner_waits() and ends early.
  void LockForNic() {
    if (!owner_waits()) {
      mutex_.lock();
      return;
    }
    turnstile_.lock();  // held by the owner that waits until it has the mutex
    mutex_.lock();
    turnstile_.unlock();
  }

  bool owner_waits() const { return owners_waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  std::mutex turnstile_;
  std::mutex mutex_;
  std::atomic<int> owners_waiting_{0};
};

}  // namespace tokamak::verbs::soft
