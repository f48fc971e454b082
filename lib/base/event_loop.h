// EventLoop is the seam between logic and time: it tells the time, runs tasks now or later, and
// takes wake-ups from other threads.
//
// Logic runs on a real loop (lib/os/epoll_loop.h), in virtual time (sim/time/sim_loop.h) and inside
// ns-3, and never asks which. tests/base/event_loop_contract.h checks the promises below on all of
// them.
//
// Law: tasks run one at a time, in order of their time; equal times in the order of the calls.
// Law: no task runs inside the call that took it.
// Thread rule: everything here is for the loop's own thread, except Signal::Raise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "lib/base/time.h"

namespace tokamak::base {

class EventLoop;

// Captures of up to 16 bytes ([this, index]) need no allocation.
using Task = std::function<void()>;

// The right to have one task run. Dropping or overwriting it cancels, so a task may capture its
// owner. A fired timer is inert. Move-only; must not outlive its loop.
class [[nodiscard]] Timer final {
 public:
  Timer() = default;
  Timer(Timer&& other) noexcept : loop_(std::exchange(other.loop_, nullptr)), ticket_(other.ticket_) {}
  Timer& operator=(Timer&& other) noexcept;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { Cancel(); }

  // Cancels the task. No effect if it has run.
  void Cancel();

  // True until the task starts to run or is cancelled.
  bool armed() const;

 private:
  friend class EventLoop;
  Timer(EventLoop& loop, uint64_t ticket) : loop_(&loop), ticket_(ticket) {}

  EventLoop* loop_ = nullptr;
  uint64_t ticket_ = 0;
};

// A wake-up from any thread. A run answers all raises before it; each raise is followed by a run
// that starts after it. Dropping it, on the loop's thread, cancels; the caller ensures that no
// other thread raises it then or later.
class Signal {
 public:
  virtual ~Signal() = default;

  // Raises it, from any thread; neither waits nor allocates. The task sees earlier writes of the
  // raising thread.
  virtual void Raise() = 0;
};

class EventLoop {
 public:
  virtual ~EventLoop() = default;

  // Returns the time since the loop began; constant during a task, except for Spend.
  virtual Time Now() const = 0;

  // Runs `task` after those already due.
  Timer Post(Task task) { return RunAt(Now(), std::move(task)); }

  // Runs `task` once at `time`, never early. A time that has passed counts as Now().
  Timer RunAt(Time time, Task task) { return Timer(*this, Schedule(time, std::move(task))); }
  Timer RunAfter(Duration delay, Task task) { return RunAt(Now() + delay, std::move(task)); }

  // Declares `duration` of processor time spent here; a real loop ignores it. A simulated loop
  // advances its node's processor: requests made after Spend take effect then, requests made before
  // it leave earlier, and the node's next task starts when the processor is free.
  virtual void Spend(Duration duration) = 0;

  // Spends the time that this processor takes to copy `bytes`.
  virtual void SpendOnCopy(uint64_t bytes) = 0;

  // Makes a wake-up that runs `task` on this loop.
  virtual std::unique_ptr<Signal> MakeSignal(Task task) = 0;

 protected:
  // For Timer. Tickets are never reused.
  virtual uint64_t Schedule(Time time, Task&& task) = 0;
  virtual void Unschedule(uint64_t ticket) = 0;
  virtual bool Scheduled(uint64_t ticket) const = 0;

 private:
  friend class Timer;
};

inline Timer& Timer::operator=(Timer&& other) noexcept {
  if (this == &other) return *this;
  Cancel();
  loop_ = std::exchange(other.loop_, nullptr);
  ticket_ = other.ticket_;
  return *this;
}

inline void Timer::Cancel() {
  if (EventLoop* loop = std::exchange(loop_, nullptr)) loop->Unschedule(ticket_);
}

inline bool Timer::armed() const { return loop_ != nullptr && loop_->Scheduled(ticket_); }

}  // namespace tokamak::base
