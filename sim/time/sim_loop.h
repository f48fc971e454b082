// Virtual time: one Scheduler holds the world's clock, and each simulated processor has a SimLoop
// of its own on it.
//
// The clock jumps from task to task, so an hour of a quiet cluster takes no time, and nothing
// depends on the speed of the machine. A node is a SimLoop; a device is another, so a busy node
// does not delay its NIC. A loop runs one task at a time: Spend keeps its processor busy, and its
// next task starts when that is free, while other loops go on.
//
// Law: the same calls give the same order of tasks. Over all loops tasks start in order of time; at
// equal times, in the order asked for. A loop's tasks keep the order of EventLoop's law.
// Law: posts and signals of a task after Spend, on this loop or another, take effect at its Now().
// Law: a simulation spans less than 106 days, since Time compares as a serial number
// (lib/base/time.h).
// Thread rule: a Scheduler and its loops belong to one thread. Loops must be dropped before their
// scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "lib/base/containers/indexed_heap.h"
#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "lib/base/timer_queue.h"
#include "sim/time/copy_speed.h"

namespace tokamak::sim {

class SimLoop;

class Scheduler final {
 public:
  explicit Scheduler(base::Time start = base::Time()) : world_(start) {}
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Inside a task, the time on its processor (its start and what it has spent); else the start of
  // the last task, or the end of RunUntil.
  base::Time Now() const { return in_task_ ? task_now_ : world_; }

  // Runs the next task of all loops. Returns false if none waits.
  bool Step();

  // Runs until nothing waits or a task calls Stop. A cluster with heartbeats never gets idle: give
  // it a limit.
  void Run();
  void Stop() { stopped_ = true; }

  // Runs until nothing waits, at most `most` tasks. Returns whether it is idle.
  bool RunUntilIdle(uint64_t most = UINT64_MAX);

  // Runs every task that starts at or before `time`; then it is `time`, or already later.
  void RunUntil(base::Time time);
  void RunFor(base::Duration duration) { RunUntil(Now() + duration); }

  // Runs until `done`, which is asked before the first and after each task, or until the next task
  // would start after `limit`; then it is `limit`. Returns the last result of `done`.
  bool RunUntil(const std::function<bool()>& done, base::Time limit);

  bool idle() const { return heap_.empty(); }
  // Returns the loop whose task Step runs next; null if none waits. So a test can tell what each
  // processor costs.
  const SimLoop* next() const { return heap_.empty() ? nullptr : heap_.front(); }
  // Returns the loop whose task runs now; null outside of tasks, or after that task has dropped its
  // loop.
  SimLoop* running() const { return running_; }
  uint64_t tasks_run() const { return tasks_run_; }

 private:
  friend class SimLoop;

  // Orders loops by time, then by the order in which their first tasks start.
  struct InOrder {
    bool Before(const SimLoop* a, const SimLoop* b) const;
    void Place(SimLoop* loop, size_t position) const;
  };
  using Heap = base::IndexedHeap<SimLoop*, InOrder>;

  void Update(SimLoop& loop);  // its first task or the time it is free may have changed
  void Forget(SimLoop& loop);

  base::Time world_;
  base::Time task_now_;
  SimLoop* running_ = nullptr;  // its task runs
  bool in_task_ = false;        // stays true if that task dropped its own loop
  bool stopped_ = false;
  uint64_t next_order_ = 0;
  uint64_t tasks_run_ = 0;
  size_t loops_ = 0;
  Heap heap_;  // the loops with tasks
};

// One simulated processor. Outside of tasks (a test or a world that sets up) it may be used as if
// inside one.
class SimLoop final : public base::EventLoop {
 public:
  explicit SimLoop(Scheduler& scheduler);
  ~SimLoop() override;

  // Inside a task, of this loop or another, the time on the processor that runs it.
  base::Time Now() const override;

  // Only from this loop's own tasks, or outside of any. `duration` must not be negative.
  void Spend(base::Duration duration) override;
  void SpendOnCopy(uint64_t bytes) override { Spend(copying_.TimeOf(bytes)); }

  // Takes effect now.
  void SetCopySpeed(CopySpeed copying) { copying_ = copying; }

  // A Raise counts from the raising task's Now(), the earliest start of the run.
  std::unique_ptr<base::Signal> MakeSignal(base::Task task) override;

  // The time from which the processor is free for the next task; may have passed.
  base::Time busy_until() const { return busy_until_; }

  // All the time spent so far.
  base::Duration spent() const { return spent_; }

 protected:
  uint64_t Schedule(base::Time time, base::Task&& task) override;
  void Unschedule(uint64_t ticket) override;
  bool Scheduled(uint64_t ticket) const override { return timers_.Contains(ticket); }

 private:
  friend class Scheduler;

  Scheduler& scheduler_;
  base::TimerQueue timers_;
  base::Time busy_until_;
  base::Time setup_now_;  // Spend outside of tasks has moved this loop's view to it
  base::Duration spent_;
  CopySpeed copying_;

  // For Scheduler's heap.
  base::Time start_;
  uint64_t order_ = 0;
  size_t position_ = Scheduler::Heap::kNowhere;
};

}  // namespace tokamak::sim
