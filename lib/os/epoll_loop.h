// EpollLoop is the real event loop: the monotonic clock, epoll, and wake-ups from other threads.
//
// Each round runs a bounded number of due timers, raised signals, pollers and file descriptors, so
// none starves another. After a round without work the loop spins or sleeps, as its Detection says.
// A round, or a signal raised while the loop is awake, costs no system call, except for a look at
// the descriptors every kDescriptorInterval, but not before kBusyRounds rounds (every
// kIdleDescriptorInterval while spinning without other work).
//
// Reading the clock costs some 20 ns where a processor's counter can be read, and microseconds
// where it takes a system call, as in many virtual machines. So it is read when a task asks, after
// a round that found work or slept, and in one of kIdleRoundsPerClock idle rounds: a spinning loop
// is late by at most that many rounds with timers, descriptors, the end of its spinning and
// RunUntil's limit.
//
// Signals, pollers and descriptors are not ordered with timers: each runs in its part of a round.
// Thread rule: one thread uses the loop (the one that runs it; before that, the one that sets it
// up), except for Stop and Signal::Raise.
// Lifetimes: timers, signals, watches and pollers are dropped before the loop.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "lib/base/timer_queue.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/poller.h"
#include "lib/os/raised_signals.h"

namespace tokamak::os {

class EpollLoop;

struct Detection {
  enum class Mode {
    kBusy,      // never sleeps: least delay, a whole core
    kEvent,     // sleeps after a round without work
    kAdaptive,  // spins for `spin` after work, then sleeps
  };
  Mode mode = Mode::kEvent;
  base::Duration spin;

  static Detection Busy() { return {Mode::kBusy, {}}; }
  static Detection Event() { return {Mode::kEvent, {}}; }
  static Detection Adaptive(base::Duration spin) { return {Mode::kAdaptive, spin}; }
};

// A watched descriptor. Dropping it ends the watch: its callback runs no more, even for an event
// that is known already. Drop it before the descriptor is closed. Move-only; must not outlive its
// loop.
class [[nodiscard]] FdWatch final {
 public:
  FdWatch() = default;
  FdWatch(FdWatch&& other) noexcept : loop_(std::exchange(other.loop_, nullptr)), ticket_(other.ticket_) {}
  FdWatch& operator=(FdWatch&& other) noexcept;
  ~FdWatch() { Reset(); }

  // Changes the events watched for (EPOLLIN, EPOLLOUT, EPOLLRDHUP); 0 pauses, except for EPOLLERR
  // and EPOLLHUP.
  void SetEvents(uint32_t events);
  void Reset();
  bool active() const { return loop_ != nullptr; }

 private:
  friend class EpollLoop;
  FdWatch(EpollLoop& loop, uint64_t ticket) : loop_(&loop), ticket_(ticket) {}

  EpollLoop* loop_ = nullptr;
  uint64_t ticket_ = 0;
};

// A poller that is polled. Dropping it ends the polling, also from inside Poll. Drop it before the
// poller and before its descriptor is closed. Move-only; must not outlive its loop.
class [[nodiscard]] PollerHandle final {
 public:
  PollerHandle() = default;
  PollerHandle(PollerHandle&& other) noexcept : loop_(std::exchange(other.loop_, nullptr)), poller_(other.poller_) {}
  PollerHandle& operator=(PollerHandle&& other) noexcept;
  ~PollerHandle() { Reset(); }

  void Reset();

 private:
  friend class EpollLoop;
  PollerHandle(EpollLoop& loop, Poller& poller) : loop_(&loop), poller_(&poller) {}

  EpollLoop* loop_ = nullptr;
  Poller* poller_ = nullptr;
};

class EpollLoop final : public base::EventLoop {
 public:
  using FdCallback = std::function<void(uint32_t events)>;
  using Clock = uint64_t (*)();  // nanoseconds, monotonic

  static constexpr int kIdleRoundsPerClock = 16;

  // CLOCK_MONOTONIC.
  static uint64_t MonotonicNanoseconds();

  // `clock` is for tests of a loop that does not sleep; sleeping takes real time.
  explicit EpollLoop(Detection detection = Detection::Event(), Clock clock = &MonotonicNanoseconds);
  ~EpollLoop() override;

  // Runs until Stop. Returns at once if Stop was called before; after that it may be called again.
  void Run();

  // Ends Run after the current round. Thread-safe.
  void Stop();

  // Runs until `done`, asked before the first and after each round, Stop or `limit`. Returns true
  // if `done`. For tests and programs.
  bool RunUntil(const std::function<bool()>& done, base::Time limit);

  // For users without a thread for the loop, whose threads do its work one at a time, under a lock
  // of theirs:
  //
  //   do {
  //     while (loop.RunDue()) {}                        // all due work, without waiting
  //   } while (loop.ArmPollers());                      // if the loop has pollers
  //   const base::Duration most = loop.PrepareToWait();
  //   poll(loop.descriptor() and others, most);         // here without the lock
  //
  // Runs one round that does not wait. Returns true if anything ran.
  bool RunDue();

  // Runs only raised signals, at once. Returns true if anything ran.
  bool RunRaised();

  // Declares that the caller runs due work before it waits, or lets others wait: until
  // PrepareToWait a raised signal wakes nobody.
  void Attend() { asleep_.store(false, std::memory_order_seq_cst); }

  // Lets new work of pollers make descriptor() readable, see Poller. Returns true if a poller had
  // work already, which has been done. A caller that does not wait need not call it: then only
  // RunDue looks at pollers, and nobody need be woken.
  bool ArmPollers();

  // Lets a raised signal make descriptor() readable. Returns how long to wait at most: zero if one
  // was raised meanwhile.
  base::Duration PrepareToWait();

  // Readable when a watched descriptor has an event, or the loop was woken. Owned by the loop.
  int descriptor() const { return epoll_.get(); }

  // Runs `callback` in each round in which `fd` has one of `events` (level-triggered), EPOLLERR or
  // EPOLLHUP. `fd` stays the caller's and is watched at most once.
  FdWatch Watch(int fd, uint32_t events, FdCallback callback);

  PollerHandle AddPoller(Poller& poller);

  Detection detection() const { return detection_; }

  // How often it asked the kernel for events, asleep or not. Any thread.
  uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }
  void SetDetection(Detection detection);

  // Returns the clock as read when a task first asked for it; outside of tasks, as it is now.
  base::Time Now() const override {
    if (!in_round_) return ReadClock();
    if (!fresh_) LookAtClock();
    return now_;
  }
  void Spend(base::Duration) override {}
  void SpendOnCopy(uint64_t) override {}
  std::unique_ptr<base::Signal> MakeSignal(base::Task task) override;

 protected:
  uint64_t Schedule(base::Time time, base::Task&& task) override;
  void Unschedule(uint64_t ticket) override { timers_.Remove(ticket); }
  bool Scheduled(uint64_t ticket) const override { return timers_.Contains(ticket); }

 private:
  friend class FdWatch;
  friend class PollerHandle;
  class LoopSignal;

  static constexpr int kTimersPerRound = 64;
  static constexpr int kEventsPerRound = 64;
  // Intervals at which a loop that is awake looks at its descriptors, with and without other work.
  // Work that follows an event often ends within a few rounds; then the loop sleeps, and looks
  // there.
  static constexpr base::Duration kDescriptorInterval = base::Microseconds(50);
  static constexpr int kBusyRounds = 4;
  static constexpr base::Duration kIdleDescriptorInterval = base::Microseconds(1);
  // An idle loop wakes this often, since remembered times must not get too old to compare.
  static constexpr base::Duration kLongestSleep = base::Seconds(3600);

  struct Watched {
    int fd = -1;
    uint32_t events = 0;
    uint32_t generation = 0;
    FdCallback callback;
  };
  struct Polled {
    Poller* poller = nullptr;  // null once removed
    FdWatch watch;
  };

  base::Time ReadClock() const;
  void LookAtClock() const;

  void Turn(const base::Time* limit);
  bool RunRound();
  bool RunTimers();
  bool RunSignals();
  bool RunPollers();
  bool RunDescriptors(base::Duration wait);
  bool Spinning();
  bool Look();
  bool Sleep(const base::Time* limit);
  base::Duration AnnounceSleep(const base::Time* limit);
  void Wake();

  Watched* FindWatched(uint64_t ticket);
  void SetEvents(uint64_t ticket, uint32_t events);
  void Unwatch(uint64_t ticket);
  void RunCallback(uint64_t ticket, uint32_t events);
  void RemovePoller(Poller* poller);

  const Clock clock_;
  const uint64_t began_;  // by clock_
  const FileDescriptor epoll_;
  const FileDescriptor wake_;
  Detection detection_;

  mutable base::Time now_;      // when the clock was last read
  mutable bool fresh_ = false;  // true if that was in this round, and no task has ended since
  int rounds_to_clock_ = 0;     // idle rounds until it is read again
  base::Time descriptors_seen_;
  int rounds_since_ = 0;  // rounds with work since then
  std::atomic<uint64_t> waits_{0};
  base::Time spin_until_;
  bool worked_ = false;  // true if the last round found work
  bool spinning_ = false;
  bool in_round_ = false;
  bool precise_wait_ = true;  // false once the kernel turns out to lack epoll_pwait2
  uint64_t next_order_ = 0;

  base::TimerQueue timers_;
  RaisedSignals signals_;
  std::vector<Polled> pollers_;
  bool pollers_removed_ = false;
  std::vector<Watched> watched_;
  std::vector<uint32_t> watched_free_;
  std::array<epoll_event, kEventsPerRound> events_;

  std::atomic<bool> asleep_{false};  // true while asleep, or about to look for the last time before
  std::atomic<bool> stopped_{false};
};

}  // namespace tokamak::os
