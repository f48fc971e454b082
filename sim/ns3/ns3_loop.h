// SPDX-License-Identifier: GPL-2.0-only
//
// Ns3Loop is an event loop on ns-3's scheduler: the same logic, beside other models of an ns-3
// program.
//
// ns-3 keeps cancelled events until their time, so tasks stay in the loops' own timer queues, with
// an ns-3 wake-up only for a first task earlier than all wake-ups held. Each runs one task: ns-3's
// events of the same time come between.
//
// A loop is one simulated processor; Spend as in sim/time/sim_loop.h.
//
// Law: tasks run in SimLoops' order (by time, then as asked for), so a simulation is the same on
// either, to the last packet, whatever else ns-3 simulates. Thread rule: that of ns3::Simulator,
// one in a process. A loop may go after Simulator::Destroy, but no task runs then.
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

// Sets picoseconds, and our fastest scheduler, once: before any other call of ns-3.
void PrepareSimulator();

class Ns3Loop final : public base::EventLoop {
 public:
  // Requires picoseconds: PrepareSimulator.
  Ns3Loop();
  ~Ns3Loop() override;
  Ns3Loop(const Ns3Loop&) = delete;
  Ns3Loop& operator=(const Ns3Loop&) = delete;

  // Returns Simulator::Now(), plus what the running task has spent.
  static base::Time Clock();

  // The same; outside of tasks plus what this loop has spent there.
  base::Time Now() const override;

  // Only from this loop's tasks, or outside of any. Not negative.
  void Spend(base::Duration duration) override;
  void SpendOnCopy(uint64_t bytes) override { Spend(copying_.TimeOf(bytes)); }

  void SetCopySpeed(CopySpeed copying) { copying_ = copying; }

  std::unique_ptr<base::Signal> MakeSignal(base::Task task) override;

  // Returns null outside of tasks, or after the task dropped its loop.
  static Ns3Loop* running();

  // Runs until `done`, asked before the first and after each task, or until every task starting by
  // `limit` has run; then it is `limit`. Returns the last result of `done`.
  static bool RunUntil(const std::function<bool()>& done, base::Time limit);

 protected:
  uint64_t Schedule(base::Time time, base::Task&& task) override;
  void Unschedule(uint64_t ticket) override;
  bool Scheduled(uint64_t ticket) const override { return timers_.Contains(ticket); }

 private:
  class WakeUp;
  struct World;

  // Orders by time, then by first tasks.
  struct InOrder {
    bool Before(const Ns3Loop* a, const Ns3Loop* b) const;
    void Place(Ns3Loop* loop, size_t position) const { loop->position_ = position; }
  };
  using Heap = base::IndexedHeap<Ns3Loop*, InOrder>;

  static World& world();
  void Update();  // after a change of its first task, or its busy time

  base::TimerQueue timers_;
  base::Time busy_until_;
  CopySpeed copying_;
  base::Time setup_now_;  // this loop's time after Spend outside of tasks

  // For the heap.
  base::Time start_;
  uint64_t order_ = 0;
  size_t position_ = Heap::kNowhere;
};

}  // namespace tokamak::sim
