// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/ns3_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "ns3/event-id.h"
#include "ns3/event-impl.h"
#include "ns3/global-value.h"
#include "ns3/nstime.h"
#include "ns3/priority-queue-scheduler.h"
#include "ns3/ptr.h"
#include "ns3/simulator.h"
#include "ns3/type-id.h"
#include "sim/time/virtual_signal.h"

namespace tokamak::sim {
namespace {

base::Time SimulatorNow() {
  return base::Time::FromPicoseconds(static_cast<uint64_t>(ns3::Simulator::Now().GetTimeStep()));
}

}  // namespace

// One for all loops, as ns-3 has one simulator.
struct Ns3Loop::World {
  World();
  void Arm();
  void OnWakeUp();
  void RunFirst();
  void StopAtLimit();
  void Forget();

  Heap heap;  // loops with tasks
  uint64_t next_order = 0;
  std::vector<base::Time> wake_ups;  // held by ns-3, earliest last
  ns3::Ptr<ns3::EventImpl> wake_up;  // shared by all
  bool known = false;                // the simulator will report its destruction

  bool in_task = false;                         // also after the task dropped its own loop
  Ns3Loop* running = nullptr;                   // running its task
  base::Time now;                               // with what it has spent
  const std::function<bool()>* done = nullptr;  // during RunUntil
  bool was_done = false;
  ns3::EventId stop;  // RunUntil at its limit
};

class Ns3Loop::WakeUp final : public ns3::EventImpl {
 protected:
  void Notify() override { world().OnWakeUp(); }
};

Ns3Loop::World::World() : wake_up(new WakeUp, false) {}

Ns3Loop::World& Ns3Loop::world() {
  static World& world = *new World;  // never destroyed: loops may be static
  return world;
}

void PrepareSimulator() {
  if (ns3::Time::GetResolution() != ns3::Time::PS) ns3::Time::SetResolution(ns3::Time::PS);
  ns3::GlobalValue::Bind("SchedulerType", ns3::TypeIdValue(ns3::PriorityQueueScheduler::GetTypeId()));
}

Ns3Loop::Ns3Loop() {
  CHECK(ns3::Time::GetResolution() == ns3::Time::PS)
      << "ns-3 must count in picoseconds: call PrepareSimulator(), or Time::SetResolution(Time::PS), first in main";
  busy_until_ = setup_now_ = Now();
}

Ns3Loop::~Ns3Loop() {
  timers_.Clear();
  World& world = Ns3Loop::world();
  if (position_ != Heap::kNowhere) world.heap.Remove(position_);
  if (world.running == this) world.running = nullptr;
}

base::Time Ns3Loop::Clock() { return world().in_task ? world().now : SimulatorNow(); }

base::Time Ns3Loop::Now() const { return world().in_task ? Clock() : std::max(Clock(), setup_now_); }

Ns3Loop* Ns3Loop::running() { return world().running; }

void Ns3Loop::Spend(base::Duration duration) {
  CHECK(duration >= base::Duration());
  World& world = Ns3Loop::world();
  CHECK(!world.in_task || world.running == this) << "time is spent on a loop that does not run";
  const base::Time now = Now() + duration;
  if (world.in_task) {
    world.now = now;
    busy_until_ = now;
  } else {
    setup_now_ = now;
    busy_until_ = std::max(busy_until_, now);
    Update();
  }
}

std::unique_ptr<base::Signal> Ns3Loop::MakeSignal(base::Task task) {
  return std::make_unique<VirtualSignal>(*this, std::move(task));
}

uint64_t Ns3Loop::Schedule(base::Time time, base::Task&& task) {
  const uint64_t ticket = timers_.Add(std::max(time, Now()), world().next_order++, std::move(task));
  Update();
  return ticket;
}

void Ns3Loop::Unschedule(uint64_t ticket) {
  timers_.Remove(ticket);
  Update();
}

bool Ns3Loop::InOrder::Before(const Ns3Loop* a, const Ns3Loop* b) const {
  return a->start_ != b->start_ ? a->start_ < b->start_ : a->order_ < b->order_;
}

void Ns3Loop::Update() {
  World& world = Ns3Loop::world();
  if (world.running == this) return;  // RunFirst does it after the task
  if (timers_.empty()) {
    if (position_ != Heap::kNowhere) world.heap.Remove(position_);
    return;
  }
  start_ = std::max({timers_.next_time(), busy_until_, SimulatorNow()});
  order_ = timers_.next_order();
  if (position_ == Heap::kNowhere) {
    world.heap.Push(this);
  } else {
    world.heap.Update(position_, this);
  }
  if (!world.in_task) world.Arm();
}

void Ns3Loop::World::Arm() {
  if (heap.empty()) return;
  const base::Time start = heap.front()->start_;
  if (!wake_ups.empty() && wake_ups.back() <= start) return;
  if (!std::exchange(known, true)) ns3::Simulator::ScheduleDestroy([] { world().Forget(); });
  wake_ups.push_back(start);
  const base::Duration delay = std::max(start - SimulatorNow(), base::Duration());
  ns3::Simulator::Schedule(ns3::TimeStep(static_cast<uint64_t>(delay.picoseconds())),
                           ns3::Ptr<ns3::EventImpl>(wake_up));
}

void Ns3Loop::World::OnWakeUp() {
  wake_ups.pop_back();
  if (!heap.empty() && heap.front()->start_ <= SimulatorNow()) return RunFirst();
  Arm();
}

void Ns3Loop::World::RunFirst() {
  CHECK(!in_task) << "a task must not run the simulator";
  in_task = true;
  running = heap.front();
  now = SimulatorNow();
  running->timers_.Take()();
  in_task = false;
  // The task may have dropped its loop.
  if (Ns3Loop* loop = std::exchange(running, nullptr)) loop->Update();
  Arm();
  if (done == nullptr || was_done || !(*done)()) return;
  was_done = true;
  ns3::Simulator::Stop();
}

// Tasks that start now come first.
void Ns3Loop::World::StopAtLimit() {
  if (heap.empty() || heap.front()->start_ > SimulatorNow()) return ns3::Simulator::Stop();
  stop = ns3::Simulator::ScheduleNow([] { world().StopAtLimit(); });
}

// No task runs any more.
void Ns3Loop::World::Forget() {
  while (!heap.empty()) heap.Remove(heap.size() - 1);
  wake_ups.clear();
  known = false;
}

bool Ns3Loop::RunUntil(const std::function<bool()>& done, base::Time limit) {
  World& world = Ns3Loop::world();
  CHECK(!world.in_task && world.done == nullptr) << "a task must not run the simulator";
  if (done()) return true;
  if (limit < SimulatorNow()) return false;
  world.done = &done;
  world.was_done = false;
  world.stop = ns3::Simulator::Schedule(ns3::TimeStep(static_cast<uint64_t>((limit - SimulatorNow()).picoseconds())),
                                        [] { Ns3Loop::world().StopAtLimit(); });
  ns3::Simulator::Run();
  ns3::Simulator::Remove(world.stop);
  world.done = nullptr;
  return world.was_done;
}

}  // namespace tokamak::sim
