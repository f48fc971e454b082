// RealTime is a simulated network's event loop that keeps up with the clock, if the machine can.
#pragma once

#include "lib/base/event_loop.h"
#include "lib/base/time.h"

namespace tokamak::sim {

class RealTime {
 public:
  virtual ~RealTime() = default;

  virtual base::EventLoop& loop() = 0;

  // Runs `task` on the loop's thread now, from any thread; cannot be cancelled: captured objects
  // live until the loop has stopped.
  virtual void Hand(base::Task task) = 0;

  // Returns the lateness of present events. On the loop's thread only.
  virtual base::Duration lag() const = 0;
};

}  // namespace tokamak::sim
