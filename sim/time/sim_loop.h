// Virtual time: one Scheduler holds the world's clock, and each simulated processor has a SimLoop
// of its own on it.
//
// The clock jumps from task to task, whatever the machine's speed. A node is a SimLoop, a device
// another: a busy node does not delay its NIC. A loop runs one task at a time; Spend delays its
// next one, while other loops go on.
//
// Law: the same calls give the same order of tasks: by time, at equal times as asked for; a loop's
// own by EventLoop's law.
// Law: posts and signals of a task after Spend, on any loop, take effect at its Now().
// Law: a simulation spans less than 106 days: Time compares as a serial number (lib/base/time.h).
// Thread rule: one thread for a Scheduler and its loops, which are dropped before it.
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

  // Inside a task, its processor's time (start and spent); else the last task's start, or
  // RunUntil's end.
  base::Time Now() const { return in_task_ ? task_now_ : world_; }

  // False: none waits.
  bool Step();

  // Runs until nothing waits, or Stop: a cluster with heartbeats is never idle.
  void Run();
  void Stop() { stopped_ = true; }

  // Runs at most `most` tasks. True: idle.
  bool RunUntilIdle(uint64_t most = UINT64_MAX);

  // Runs tasks that start by `time`; then it is `time`, or later already.
  void RunUntil(base::Time time);
  void RunFor(base::Duration duration) { RunUntil(Now() + duration); }

  // Runs until `done`, asked before the first and after each task, or until the next would start
  // after `limit`; then it is `limit`. Returns the last result of `done`.
  bool RunUntil(const std::function<bool()>& done, base::Time limit);

  bool idle() const { return heap_.empty(); }
  // Returns the loop of the next task; null: none. For a processor's costs in tests.
  const SimLoop* next() const { return heap_.empty() ? nullptr : heap_.front(); }
  // Null outside of tasks, or after the task dropped its loop.
  SimLoop* running() const { return running_; }
  uint64_t tasks_run() const { return tasks_run_; }

 private:
  friend class SimLoop;

  struct InOrder {
    bool Before(const SimLoop* a, const SimLoop* b) const;
    void Place(SimLoop* loop, size_t position) const;
  };
  using Heap = base::IndexedHeap<SimLoop*, InOrder>;

  void Update(SimLoop& loop);  // after a change of its first task, or its busy time
  void Forget(SimLoop& loop);

  base::Time world_;
  base::Time task_now_;
  SimLoop* running_ = nullptr;
  bool in_task_ = false;  // also after the task dropped its own loop
  bool stopped_ = false;
  uint64_t next_order_ = 0;
  uint64_t tasks_run_ = 0;
  size_t loops_ = 0;
  Heap heap_;
};

// One simulated processor. Setting up may use it outside of tasks as if inside.
class SimLoop final : public base::EventLoop {
 public:
  explicit SimLoop(Scheduler& scheduler);
  ~SimLoop() override;

  // Inside any task, the time on its processor.
  base::Time Now() const override;

  // Only from this loop's tasks, or outside of any. Not negative.
  void Spend(base::Duration duration) override;
  void SpendOnCopy(uint64_t bytes) override { Spend(copying_.TimeOf(bytes)); }

  void SetCopySpeed(CopySpeed copying) { copying_ = copying; }

  // A Raise counts from the raising task's Now(): the run's earliest start.
  std::unique_ptr<base::Signal> MakeSignal(base::Task task) override;

  // Free for the next task from then; may have passed.
  base::Time busy_until() const { return busy_until_; }

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
  base::Time setup_now_;  // this loop's time after Spend outside of tasks
  base::Duration spent_;
  CopySpeed copying_;

  base::Time start_;
  uint64_t order_ = 0;
  size_t position_ = Scheduler::Heap::kNowhere;
};

}  // namespace tokamak::sim
