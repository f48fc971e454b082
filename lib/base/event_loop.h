// EventLoop is the seam between logic and time: it tells the time, runs tasks now or later, and
// takes wake-ups from other threads.
//
// The same logic runs on a real loop (lib/os/epoll_loop.h), in virtual time (sim/time/sim_loop.h)
// and inside ns-3. It never waits, never reads a clock and never asks which of them it is on.
// tests/base/event_loop_contract.h checks the promises below for every implementation.
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

// Stores a capture of up to 16 bytes ([this], say, or [this, index]) without allocating.
using Task = std::function<void()>;

// The right to have one task run. Dropping or overwriting it cancels, so a task may safely capture
// the object that owns its Timer. A fired timer is inert. Move-only; must not outlive its loop.
class [[nodiscard]] Timer final {
 public:
  Timer() = default;
  Timer(Timer&& other) noexcept : loop_(std::exchange(other.loop_, nullptr)), ticket_(other.ticket_) {}
  Timer& operator=(Timer&& other) noexcept;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { Cancel(); }

  // Cancels the task. No effect if it ran already.
  void Cancel();

  // True until the task starts to run or is cancelled.
  bool armed() const;

 private:
  friend class EventLoop;
  Timer(EventLoop& loop, uint64_t ticket) : loop_(&loop), ticket_(ticket) {}

  EventLoop* loop_ = nullptr;
  uint64_t ticket_ = 0;
};

// A wake-up that any thread may give. One run answers all raises before it starts; every raise is
// followed by a run that starts after it. Dropping it, on the loop's thread, cancels: the task
// never runs again. The caller ensures that no other thread raises it while or after it is dropped.
class Signal {
 public:
  virtual ~Signal() = default;

  // Thread-safe; neither waits nor allocates. Earlier writes of the raising thread are visible to
  // the task.
  virtual void Raise() = 0;
};

class EventLoop {
 public:
  virtual ~EventLoop() = default;

  // Time since the loop began. Constant while one task runs, except for Spend.
  virtual Time Now() const = 0;

  // Runs `task` after the tasks that are already due.
  Timer Post(Task task) { return RunAt(Now(), std::move(task)); }

  // Runs `task` once at `time`; never early. A time that has passed counts as Now().
  Timer RunAt(Time time, Task task) { return Timer(*this, Schedule(time, std::move(task))); }
  Timer RunAfter(Duration delay, Task task) { return RunAt(Now() + delay, std::move(task)); }

  // Declares `duration` of processor time spent here. A real loop ignores it. A simulated loop
  // advances its node's processor: requests after Spend take effect then, requests before it leave
  // earlier, and the node's next task starts when the processor is free.
  virtual void Spend(Duration duration) = 0;

  // Declares `bytes` of memory copied here: as Spend, for the time that this loop's processor
  // takes.
  virtual void SpendOnCopy(uint64_t bytes) = 0;

  // Makes a wake-up for this loop, see Signal. `task` runs on this loop.
  virtual std::unique_ptr<Signal> MakeSignal(Task task) = 0;

 protected:
  // For Timer. A ticket is never used twice in the life of a loop.
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
