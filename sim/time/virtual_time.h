// VirtualTime is a clock that jumps from task to task, and the processors that run them: our own
// (sim_time.h), or ns-3's (ns3/ns3_time.h). Both behave the same, to the last packet.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "sim/time/copy_speed.h"

namespace tokamak::sim {

class VirtualTime {
 public:
  virtual ~VirtualTime() = default;

  virtual base::Time Now() const = 0;

  // Makes a simulated processor, dropped before the time.
  virtual std::unique_ptr<base::EventLoop> MakeLoop(CopySpeed copying) = 0;
  std::unique_ptr<base::EventLoop> MakeLoop() { return MakeLoop(CopySpeed()); }

  // Null outside of tasks, or after the task dropped its loop.
  virtual base::EventLoop* running() const = 0;

  // Runs until `done`, asked before the first and after each task, or until all that start by
  // `limit` have run; then it is `limit`. Returns the last result of `done`.
  virtual bool RunUntil(const std::function<bool()>& done, base::Time limit) = 0;

  virtual uint64_t events() const = 0;

  void RunFor(base::Duration duration) {
    RunUntil([] { return false; }, Now() + duration);
  }
};

}  // namespace tokamak::sim
