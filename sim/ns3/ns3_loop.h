// SPDX-License-Identifier: GPL-2.0-only
//
// Ns3Loop is an event loop on ns-3's scheduler: the same logic, beside whatever else an ns-3
// program simulates.
//
// ns-3 keeps a cancelled event until its time, so a loop keeps its tasks in a TimerQueue of its
// own, and asks ns-3 for a wake-up only where its first task is earlier than every wake-up it has.
// A wake-up runs one task: what others ask for at the same time comes in between, as on any loop.
//
// A loop is one simulated processor. Spend is as in sim/sim_loop.h: what a task asks for after it
// takes effect then, on this loop or another, and the loop's next task starts when it is free.
//
// Law: a loop's tasks keep the order of EventLoop's law; those of several loops at one time start
// in an order that is the same in every run.
// Thread rule: that of ns3::Simulator, of which there is one in a process. A loop may go before or
// after Simulator::Destroy, but no task runs after it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/timer_queue.h"
#include "ns3/ptr.h"

namespace tokamak::sim {

// Picoseconds, and the scheduler that is fastest for us: before anything else is done with ns-3.
// Does nothing when it was called before.
void PrepareSimulator();

class Ns3Loop final : public base::EventLoop {
 public:
  // ns-3 must count in picoseconds, see PrepareSimulator.
  Ns3Loop();
  ~Ns3Loop() override;
  Ns3Loop(const Ns3Loop&) = delete;
  Ns3Loop& operator=(const Ns3Loop&) = delete;

  // Simulator::Now(), and inside a task, of this loop or another, what it has spent as well.
  base::Time Now() const override;

  // Only from this loop's own tasks, or outside of any. `duration` must not be negative.
  void Spend(base::Duration duration) override;

  std::unique_ptr<base::Signal> MakeSignal(base::Task task) override;

  // Runs the simulator until `done`, which is asked before the first and after each task of all
  // loops, or until `limit`. Returns what `done` said last.
  static bool RunUntil(const std::function<bool()>& done, base::Time limit);

 protected:
  uint64_t Schedule(base::Time time, base::Task task) override;
  void Unschedule(uint64_t ticket) override { timers_.Remove(ticket); }
  bool Scheduled(uint64_t ticket) const override { return timers_.Contains(ticket); }

 private:
  class WakeUp;
  struct World;

  static World& world();
  void Arm();
  void OnWakeUp();
  void RunFirst();

  base::TimerQueue timers_;
  uint64_t order_ = 0;
  base::Time busy_until_;
  base::Time setup_now_;              // where Spend outside of tasks has moved this loop's view
  std::vector<base::Time> wake_ups_;  // that ns-3 holds, the earliest last
  ns3::Ptr<WakeUp> wake_up_;          // one object for all of them
};

}  // namespace tokamak::sim
