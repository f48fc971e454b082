// RealTime is a simulated network's event loop that keeps up with the clock, if the machine can.
#pragma once

#include "lib/base/event_loop.h"
#include "lib/base/time.h"

namespace tokamak::sim {

class RealTime {
 public:
  virtual ~RealTime() = default;

  virtual base::EventLoop& loop() = 0;

  // From any thread: runs `task` on the loop's, at the present time. Not cancelled: who is captured
  // must live until the loop has stopped.
  virtual void Hand(base::Task task) = 0;

  // On the loop's thread: by how much what happens now is late.
  virtual base::Duration lag() const = 0;
};

}  // namespace tokamak::sim
