// SPDX-License-Identifier: GPL-2.0-only
//
// Ns3Loop is an event loop on ns-3's scheduler: the same logic, beside other models of an
// ns-3 program.
//
// ns-3 keeps a cancelled event until its time, so loops keep their tasks in timer queues of their
// own, and ask ns-3 for a wake-up only if the first task of all is earlier than every wake-up that
// it holds. A wake-up runs one task, so ns-3's other events of the same time come in between, as on
// any loop.
//
// A loop is one simulated processor. Spend is as in sim/time/sim_loop.h: requests of a task after
// it take effect then, on this loop or another, and the loop's next task starts when it is free.
//
// Law: tasks run in the order that they have on SimLoops: over all loops in order of time, and at
// equal times in the order asked for. So a simulation is the same on either, to the last packet,
// whatever else ns-3 simulates beside it.
// Thread rule: that of ns3::Simulator, of which there is one in a process. A loop may go before or
// after Simulator::Destroy, but no task runs after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "lib/base/containers/indexed_heap.h"
#include "lib/base/event_loop.h"
#include "lib/base/timer_queue.h"
#include "sim/time/copy_speed.h"

namespace tokamak::sim {

// Sets picoseconds, and the scheduler that is fastest for us: before any other call of ns-3. Does
// nothing when called again.
void PrepareSimulator();

class Ns3Loop final : public base::EventLoop {
 public:
  // ns-3 must count in picoseconds, see PrepareSimulator.
  Ns3Loop();
  ~Ns3Loop() override;
  Ns3Loop(const Ns3Loop&) = delete;
  Ns3Loop& operator=(const Ns3Loop&) = delete;

  // Returns Simulator::Now(), plus what the running task has spent.
  static base::Time Clock();

  // The same, and outside of tasks plus what this loop has spent there.
  base::Time Now() const override;

  // Only from this loop's own tasks, or outside of any. `duration` must not be negative.
  void Spend(base::Duration duration) override;
  void SpendOnCopy(uint64_t bytes) override { Spend(copying_.TimeOf(bytes)); }

  // Takes effect now.
  void SetCopySpeed(CopySpeed copying) { copying_ = copying; }

  std::unique_ptr<base::Signal> MakeSignal(base::Task task) override;

  // Returns the loop whose task runs now; null outside of tasks, or after that task has dropped its
  // loop.
  static Ns3Loop* running();

  // Runs the simulator until `done`, which is asked before the first and after each task of all
  // loops, or until every task that starts by `limit` has run; then it is `limit`. Returns the last
  // result of `done`.
  static bool RunUntil(const std::function<bool()>& done, base::Time limit);

 protected:
  uint64_t Schedule(base::Time time, base::Task&& task) override;
  void Unschedule(uint64_t ticket) override;
  bool Scheduled(uint64_t ticket) const override { return timers_.Contains(ticket); }

 private:
  class WakeUp;
  struct World;

  // Orders loops by time, then by the order in which their first tasks start.
  struct InOrder {
    bool Before(const Ns3Loop* a, const Ns3Loop* b) const;
    void Place(Ns3Loop* loop, size_t position) const { loop->position_ = position; }
  };
  using Heap = base::IndexedHeap<Ns3Loop*, InOrder>;

  static World& world();
  void Update();  // its first task, or the time it is free, may have changed

  base::TimerQueue timers_;
  base::Time busy_until_;
  CopySpeed copying_;
  base::Time setup_now_;  // Spend outside of tasks has moved this loop's view to it

  // For the heap of all loops with tasks.
  base::Time start_;
  uint64_t order_ = 0;
  size_t position_ = Heap::kNowhere;
};

}  // namespace tokamak::sim
