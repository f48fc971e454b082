// SPDX-License-Identifier: GPL-2.0-only
//
// Ns3RealTime is ns-3's RealtimeSimulatorImpl: an event runs when the clock shows its time, or, if
// the machine does not keep up, as soon as it can. One in a process, before any other call of ns-3.
//
// Lateness shows only in frames that leave or enter the simulation.
#pragma once

#include <memory>

#include "ns3/ptr.h"
#include "sim/emulation/real_time.h"
#include "sim/ns3/ns3_loop.h"

namespace ns3 {
class RealtimeSimulatorImpl;
}

namespace tokamak::sim {

class Ns3RealTime final : public RealTime {
 public:
  Ns3RealTime();
  ~Ns3RealTime() override;
  Ns3RealTime(const Ns3RealTime&) = delete;
  Ns3RealTime& operator=(const Ns3RealTime&) = delete;

  base::EventLoop& loop() override { return *loop_; }
  void Hand(base::Task task) override;
  base::Duration lag() const override;

  // Runs until Stop, which any thread may call, also before.
  void Run();
  void Stop();

 private:
  ns3::Ptr<ns3::RealtimeSimulatorImpl> simulator_;
  std::unique_ptr<Ns3Loop> loop_;
};

}  // namespace tokamak::sim
