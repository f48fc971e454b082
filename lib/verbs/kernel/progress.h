// Progress lets the threads that wait for the NIC do its work: a program's, where it polls or
// sleeps in a call of ours, and a thread of its own at all other times.
//
// The holder of the one lock runs the one loop. So a program's command is done before its call
// returns, an empty poll looks at the network itself, and a packet wakes the thread that sleeps for
// its event. After a short wait a thread spins for kSpin before it sleeps, like Linux's
// net.core.busy_read: waking takes longer than most answers. The thread of its own is a stand-in,
// and keeps away while others do its work:
//
//   watching   waits for the loop's descriptor and does what comes
//   standby    the program polls, or waits for the loop itself: looks every kGrace whether it still
//              does, and watches when not
//   resting    one thread of the program has waited for longer than kGrace, and sees to everything
//
// A program may cancel a thread of its own (pthread_cancel(3)) that waits here, and nowhere else:
// no lock is left held.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "lib/base/mutex.h"
#include "lib/base/time.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/no_cancellation.h"

namespace tokamak::verbs::kernel {

class Progress final {
 public:
  // The longest time for which the network goes unwatched after a program has stopped polling.
  static constexpr base::Duration kGrace = base::Milliseconds(1);

  // `loop` is used under the lock alone; `before_round` runs before each of its rounds.
  Progress(os::EpollLoop& loop, std::function<void()> before_round);
  ~Progress();

  // Holds the lock; its end does all that became due.
  class ABSL_SCOPED_LOCKABLE Hold final {
   public:
    explicit Hold(Progress& progress) ABSL_EXCLUSIVE_LOCK_FUNCTION(progress.mutex_) : progress_(progress) {
      progress_.mutex_.Lock();
      progress_.loop_.Attend();
      progress_.polls_.fetch_add(kPollsPerCall, std::memory_order_relaxed);
    }
    ~Hold() ABSL_UNLOCK_FUNCTION() {
      progress_.Settle(Waits::kNobody);
      progress_.mutex_.Unlock();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    const os::NoCancellation no_cancellation_;
    Progress& progress_;
  };

  // Holds the lock while a queue pair gets requests, which have left at its end. Arrivals are left
  // to the program's polls, or to the thread, since looking costs a system call.
  class ABSL_SCOPED_LOCKABLE Doorbell final {
   public:
    explicit Doorbell(Progress& progress) ABSL_EXCLUSIVE_LOCK_FUNCTION(progress.mutex_) : progress_(progress) {
      progress_.mutex_.Lock();
      progress_.loop_.Attend();
    }
    ~Doorbell() ABSL_UNLOCK_FUNCTION() {
      progress_.RunRaised();
      progress_.mutex_.Unlock();
    }
    Doorbell(const Doorbell&) = delete;
    Doorbell& operator=(const Doorbell&) = delete;

   private:
    const os::NoCancellation no_cancellation_;
    Progress& progress_;
  };

  // A program's poll was empty: looks at the network, unless another thread is at it.
  void Poll();

  // The program is about to sleep elsewhere, after polling here.
  void ExpectSleep();

  // Serves the network until `descriptor` is readable. Returns 0, or EINTR. Callers whose thread
  // may be cancelled must have nothing to clean up, see cancellable_sleep.h.
  int WaitReadable(int descriptor);

  // Ends the thread; calls still do their own work.
  void Stop();

 private:
  class Wait;

  // Polls in kGrace, or between two packets; below that a program may be sleeping.
  static constexpr uint64_t kBusyPolls = 32;
  // Polls that one call counts as.
  static constexpr uint64_t kPollsPerCall = 4;
  // Empty polls in a row after which another process gets the processor: its packet may be the
  // awaited one.
  static constexpr uint32_t kPollsPerYield = 8;
  // How long the thread looks on after an arrival, while it lets others run.
  static constexpr base::Duration kThreadSpin = base::Microseconds(20);
  // The same for a program's thread before it sleeps, if its last wait was at most kShortWait: such
  // a wait may be as short as kSpin when no thread has to be woken.
  static constexpr base::Duration kSpin = base::Microseconds(50);
  static constexpr base::Duration kShortWait = base::Microseconds(100);
  // The most rounds that one caller runs for others.
  static constexpr int kMostRounds = 64;

  enum class Mode : uint8_t { kAtWork, kWatching, kStandby, kResting };

  void RunRaised() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RunRounds(int most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  enum class Waits : uint8_t { kNobody, kWill };  // this thread will wait

  base::Duration Settle(Waits waits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  base::Duration Announce(Waits waits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool SpinUntilReadable(int descriptor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveLoop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeThread() { Wake(control_); }
  static void Wake(const os::FileDescriptor& control);
  void RunThread();
  void SpinABit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Mode NextMode() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  os::EpollLoop& loop_ ABSL_GUARDED_BY(mutex_);
  const std::function<void()> before_round_;
  const os::FileDescriptor control_;         // wakes the thread
  const os::FileDescriptor waiter_control_;  // wakes a program's thread that waits for the loop
  base::Mutex mutex_;
  std::atomic<uint64_t> polls_{0};
  std::atomic<uint32_t> empty_polls_{0};  // in a row
  std::atomic<bool> stopping_{false};
  Mode mode_ ABSL_GUARDED_BY(mutex_) = Mode::kAtWork;
  base::Time watches_until_ ABSL_GUARDED_BY(mutex_);  // when watching
  bool waiter_ ABSL_GUARDED_BY(mutex_) = false;       // true if a program's thread waits for the loop
  base::Time waits_until_ ABSL_GUARDED_BY(mutex_);    // its end
  base::Duration last_wait_ ABSL_GUARDED_BY(mutex_);  // length of a program's thread's last wait
  uint64_t waits_ ABSL_GUARDED_BY(mutex_) = 0;        // such threads' comings and goings
  uint64_t polls_seen_ ABSL_GUARDED_BY(mutex_) = 0;   // by the thread
  uint64_t waits_seen_ ABSL_GUARDED_BY(mutex_) = 0;
  bool worked_ ABSL_GUARDED_BY(mutex_) = false;  // true if the thread's last look found work
  std::thread thread_;
};

}  // namespace tokamak::verbs::kernel
