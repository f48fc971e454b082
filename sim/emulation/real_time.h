// RealTime is a simulated network's event loop that keeps up with the clock, if the machine can.
#pragma once

#include "lib/base/event_loop.h"
#include "lib/base/time.h"

namespace tokamak::sim {

class RealTime {
 public:
  virtual ~RealTime() = default;

  virtual base::EventLoop& loop() = 0;

  // Runs `task` on the loop's thread, at the present time; callable from any thread. Not cancelled:
  // captured objects must live until the loop has stopped.
  virtual void Hand(base::Task task) = 0;

  // Returns by how much the present events are late. On the loop's thread only.
  virtual base::Duration lag() const = 0;
};

}  // namespace tokamak::sim
