// SPDX-License-Identifier: GPL-2.0-only
//
// Ns3Time is ns-3's simulator as virtual time.
#pragma once

#include <memory>

#include "ns3/simulator.h"
#include "sim/ns3/ns3_loop.h"
#include "sim/time/virtual_time.h"

namespace tokamak::sim {

class Ns3Time final : public VirtualTime {
 public:
  // One at a time: dropping it destroys ns-3's simulator.
  Ns3Time() { PrepareSimulator(); }
  ~Ns3Time() override { ns3::Simulator::Destroy(); }
  Ns3Time(const Ns3Time&) = delete;
  Ns3Time& operator=(const Ns3Time&) = delete;

  base::Time Now() const override { return Ns3Loop::Clock(); }
  using VirtualTime::MakeLoop;
  std::unique_ptr<base::EventLoop> MakeLoop(CopySpeed copying) override {
    auto loop = std::make_unique<Ns3Loop>();
    loop->SetCopySpeed(copying);
    return loop;
  }
  base::EventLoop* running() const override { return Ns3Loop::running(); }
  bool RunUntil(const std::function<bool()>& done, base::Time limit) override { return Ns3Loop::RunUntil(done, limit); }
  uint64_t events() const override { return ns3::Simulator::GetEventCount(); }
};

}  // namespace tokamak::sim
