// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/ns3_real_time.h"

#include <sys/prctl.h>

#include <utility>

#include "lib/base/check.h"
#include "ns3/event-impl.h"
#include "ns3/global-value.h"
#include "ns3/nstime.h"
#include "ns3/realtime-simulator-impl.h"
#include "ns3/simulator.h"
#include "ns3/string.h"

namespace tokamak::sim {
namespace {

class TaskEvent final : public ns3::EventImpl {
 public:
  explicit TaskEvent(base::Task task) : task_(std::move(task)) {}

 protected:
  void Notify() override { task_(); }

 private:
  const base::Task task_;
};

}  // namespace

Ns3RealTime::Ns3RealTime() {
  ns3::GlobalValue::Bind("SimulatorImplementationType", ns3::StringValue("ns3::RealtimeSimulatorImpl"));
  PrepareSimulator();
  simulator_ = ns3::DynamicCast<ns3::RealtimeSimulatorImpl>(ns3::Simulator::GetImplementation());
  CHECK(simulator_ != nullptr) << "ns-3's simulator was used before";
  simulator_->SetSynchronizationMode(ns3::RealtimeSimulatorImpl::SYNC_BEST_EFFORT);
  loop_ = std::make_unique<Ns3Loop>();
  // The kernel's default lets it sleep 50 us longer than asked, a quarter of a frame at 200 Mb/s.
  PCHECK(prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0) == 0);
}

Ns3RealTime::~Ns3RealTime() {
  loop_.reset();
  simulator_ = nullptr;
  ns3::Simulator::Destroy();
}

// A nanosecond later, as ns-3's clock counts nanoseconds and its events picoseconds: never before
// the running event.
void Ns3RealTime::Hand(base::Task task) {
  // Raw: a counting pointer would count on two threads.
  simulator_->ScheduleWithContext(ns3::Simulator::NO_CONTEXT, ns3::NanoSeconds(1), new TaskEvent(std::move(task)));
}

base::Duration Ns3RealTime::lag() const {
  const ns3::Time late = simulator_->RealtimeNow() - ns3::Simulator::Now();
  return base::Duration::Picoseconds(late.GetTimeStep());
}

void Ns3RealTime::Run() { ns3::Simulator::Run(); }

void Ns3RealTime::Stop() {
  Hand([] { ns3::Simulator::Stop(); });
}

}  // namespace tokamak::sim
