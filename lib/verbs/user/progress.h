// Progress has the NIC's work done in the threads that wait for it: a program's, where it polls or
// sleeps in a call of ours, and a thread of its own for all other times.
//
// There is one loop and one lock, and whoever holds the lock runs the loop. So what a program asks
// for is done before its call returns, an empty poll looks at the network itself, and a thread that
// sleeps for an event is woken by the packet and not by another thread. The thread of its own is a
// stand-in, and keeps away while others do its work:
//
//   watching   waits for the loop's descriptor and does what comes
//   standby    the program polls, or waits for the loop itself: looks every kGrace whether it still
//              does, and watches when not
//   resting    one thread of the program has waited for longer than kGrace, and sees to everything:
//              wakes when that thread leaves
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "lib/base/time.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::verbs::user {

class Progress final {
 public:
  // For how long the network may go unwatched when a program that polled stops doing so.
  static constexpr base::Duration kGrace = base::Milliseconds(1);

  // `loop` is used under the lock alone; `before_round` runs before each of its rounds.
  Progress(os::EpollLoop& loop, std::function<void()> before_round);
  ~Progress();

  // Holds the lock; at the end all that became due is done.
  class ABSL_SCOPED_LOCKABLE Hold final {
   public:
    explicit Hold(Progress& progress) ABSL_EXCLUSIVE_LOCK_FUNCTION(progress.mutex_) : progress_(progress) {
      progress_.mutex_.lock();
      progress_.loop_.Attend();
      progress_.polls_.fetch_add(kPollsPerCall, std::memory_order_relaxed);
    }
    ~Hold() ABSL_UNLOCK_FUNCTION() {
      progress_.Settle(Waits::kNobody);
      progress_.mutex_.unlock();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Progress& progress_;
  };

  // A program's poll found nothing: looks at the network, unless another thread is at it.
  void Poll();

  // The program is about to sleep somewhere else, where it polled before.
  void ExpectSleep();

  // Waits until `descriptor` is readable, and sees to the network meanwhile. 0, or EINTR.
  int WaitReadable(int descriptor);

  // The thread ends. What others ask for is still done, in their calls.
  void Stop();

 private:
  // A program that polls less often than this in kGrace, or between two packets, may sleep.
  static constexpr uint64_t kBusyPolls = 32;
  // A call does as much for the network as so many polls.
  static constexpr uint64_t kPollsPerCall = 4;
  // Empty polls in a row, after which another process gets the processor: its packet may be what is
  // waited for.
  static constexpr uint32_t kPollsPerYield = 8;
  // For how long the thread looks on after something came, while it lets others run.
  static constexpr base::Duration kSpin = base::Microseconds(20);
  // Rounds that one caller runs for others before it goes on.
  static constexpr int kMostRounds = 64;

  enum class Mode : uint8_t { kAtWork, kWatching, kStandby, kResting };

  bool RunRounds(int most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  enum class Waits : uint8_t { kNobody, kWill };  // this thread

  base::Duration Settle(Waits waits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeThread() { Wake(control_); }
  static void Wake(const os::FileDescriptor& control);
  void RunThread();
  void SpinABit(std::unique_lock<std::mutex>& lock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Mode NextMode() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  os::EpollLoop& loop_;
  const std::function<void()> before_round_;
  const os::FileDescriptor control_;         // wakes the thread
  const os::FileDescriptor waiter_control_;  // wakes a program's thread that waits for the loop
  std::mutex mutex_;
  std::atomic<uint64_t> polls_{0};
  std::atomic<uint32_t> empty_polls_{0};  // in a row
  std::atomic<bool> stopping_{false};
  Mode mode_ ABSL_GUARDED_BY(mutex_) = Mode::kAtWork;
  base::Time watches_until_ ABSL_GUARDED_BY(mutex_);  // when watching
  bool waiter_ ABSL_GUARDED_BY(mutex_) = false;       // a program's thread waits for the loop
  base::Time waits_until_ ABSL_GUARDED_BY(mutex_);    // the same
  uint64_t waits_ ABSL_GUARDED_BY(mutex_) = 0;        // comings and goings of such threads
  uint64_t polls_seen_ ABSL_GUARDED_BY(mutex_) = 0;   // by the thread
  uint64_t waits_seen_ ABSL_GUARDED_BY(mutex_) = 0;
  bool worked_ ABSL_GUARDED_BY(mutex_) = false;  // the thread, when it last looked
  std::thread thread_;
};

}  // namespace tokamak::verbs::user
