// SimTime is our own virtual time: SimLoops on a Scheduler (sim_loop.h).
#pragma once

#include <memory>

#include "sim/time/sim_loop.h"
#include "sim/time/virtual_time.h"

namespace tokamak::sim {

class SimTime final : public VirtualTime {
 public:
  base::Time Now() const override { return scheduler_.Now(); }
  using VirtualTime::MakeLoop;
  std::unique_ptr<base::EventLoop> MakeLoop(CopySpeed copying) override {
    auto loop = std::make_unique<SimLoop>(scheduler_);
    loop->SetCopySpeed(copying);
    return loop;
  }
  base::EventLoop* running() const override { return scheduler_.running(); }
  bool RunUntil(const std::function<bool()>& done, base::Time limit) override {
    return scheduler_.RunUntil(done, limit);
  }
  uint64_t events() const override { return scheduler_.tasks_run(); }

  Scheduler& scheduler() { return scheduler_; }

 private:
  Scheduler scheduler_;
};

}  // namespace tokamak::sim
