// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/ns3_loop.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "ns3/event-impl.h"
#include "ns3/global-value.h"
#include "ns3/nstime.h"
#include "ns3/priority-queue-scheduler.h"
#include "ns3/simulator.h"
#include "ns3/type-id.h"
#include "sim/virtual_signal.h"

namespace tokamak::sim {
namespace {

base::Time SimulatorNow() {
  return base::Time::FromPicoseconds(static_cast<uint64_t>(ns3::Simulator::Now().GetTimeStep()));
}

}  // namespace

// ns-3 has one simulator in a process, so this is one for all loops, too.
struct Ns3Loop::World {
  bool in_task = false;                         // stays true where that task dropped its own loop
  Ns3Loop* running = nullptr;                   // whose task runs
  base::Duration spent;                         // by it
  const std::function<bool()>* done = nullptr;  // while RunUntil runs
  bool was_done = false;
};

Ns3Loop::World& Ns3Loop::world() {
  static World world;
  return world;
}

class Ns3Loop::WakeUp final : public ns3::EventImpl {
 public:
  explicit WakeUp(Ns3Loop& loop) : loop_(&loop) {}
  void Forget() { loop_ = nullptr; }

 protected:
  void Notify() override {
    if (loop_ != nullptr) loop_->OnWakeUp();
  }

 private:
  Ns3Loop* loop_;
};

void PrepareSimulator() {
  if (ns3::Time::GetResolution() != ns3::Time::PS) ns3::Time::SetResolution(ns3::Time::PS);
  ns3::GlobalValue::Bind("SchedulerType", ns3::TypeIdValue(ns3::PriorityQueueScheduler::GetTypeId()));
}

Ns3Loop::Ns3Loop() : wake_up_(new WakeUp(*this), false) {
  CHECK(ns3::Time::GetResolution() == ns3::Time::PS)
      << "ns-3 must count in picoseconds: call PrepareSimulator(), or Time::SetResolution(Time::PS), first in main";
  busy_until_ = setup_now_ = Now();
}

Ns3Loop::~Ns3Loop() {
  timers_.Clear();
  wake_up_->Forget();
  if (world().running == this) world().running = nullptr;
}

base::Time Ns3Loop::Now() const {
  if (world().in_task) return SimulatorNow() + world().spent;
  return std::max(SimulatorNow(), setup_now_);
}

void Ns3Loop::Spend(base::Duration duration) {
  CHECK(duration >= base::Duration());
  World& world = Ns3Loop::world();
  CHECK(!world.in_task || world.running == this) << "time is spent on a loop that does not run";
  const base::Time now = Now() + duration;
  if (world.in_task) {
    world.spent = world.spent + duration;
    busy_until_ = now;
  } else {
    setup_now_ = now;
    busy_until_ = std::max(busy_until_, now);
  }
}

std::unique_ptr<base::Signal> Ns3Loop::MakeSignal(base::Task task) {
  return std::make_unique<VirtualSignal>(*this, std::move(task));
}

uint64_t Ns3Loop::Schedule(base::Time time, base::Task task) {
  const uint64_t ticket = timers_.Add(std::max(time, Now()), order_++, std::move(task));
  if (world().running != this) Arm();
  return ticket;
}

void Ns3Loop::Arm() {
  if (timers_.empty()) return;
  const base::Time now = SimulatorNow();
  const base::Time start = std::max({timers_.next_time(), busy_until_, now});
  if (!wake_ups_.empty() && wake_ups_.back() <= start) return;
  wake_ups_.push_back(start);
  ns3::Simulator::Schedule(ns3::TimeStep(static_cast<uint64_t>((start - now).picoseconds())),
                           ns3::Ptr<ns3::EventImpl>(wake_up_));
}

void Ns3Loop::OnWakeUp() {
  wake_ups_.pop_back();
  const base::Time now = SimulatorNow();
  if (!timers_.empty() && timers_.next_time() <= now && busy_until_ <= now) return RunFirst();
  Arm();
}

void Ns3Loop::RunFirst() {
  World& world = Ns3Loop::world();
  CHECK(!world.in_task) << "a task must not run the simulator";
  world.in_task = true;
  world.running = this;
  world.spent = base::Duration();
  timers_.Take()();
  world.in_task = false;
  // The task may have dropped this loop.
  if (Ns3Loop* loop = std::exchange(world.running, nullptr)) loop->Arm();
  if (world.done == nullptr || world.was_done || !(*world.done)()) return;
  world.was_done = true;
  ns3::Simulator::Stop();
}

bool Ns3Loop::RunUntil(const std::function<bool()>& done, base::Time limit) {
  World& world = Ns3Loop::world();
  CHECK(!world.in_task && world.done == nullptr) << "a task must not run the simulator";
  if (done()) return true;
  const base::Time now = SimulatorNow();
  if (limit <= now) return false;
  world.done = &done;
  world.was_done = false;
  ns3::EventId stop = ns3::Simulator::Schedule(ns3::TimeStep(static_cast<uint64_t>((limit - now).picoseconds())),
                                               [] { ns3::Simulator::Stop(); });
  ns3::Simulator::Run();
  ns3::Simulator::Remove(stop);
  world.done = nullptr;
  return world.was_done;
}

}  // namespace tokamak::sim
