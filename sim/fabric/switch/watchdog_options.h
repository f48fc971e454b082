// WatchdogOptions say what a switch does about a queue that is paused and never released: by a
// broken host, or by switches that wait for each other in a circle.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::sim {

struct WatchdogOptions {
  enum class Action : uint8_t {
    kDrop,     // also those that come for the queue
    kForward,  // ignores the pause
  };

  base::Duration detection;                            // unbroken pause; 0: no watchdog
  base::Duration restoration = base::Milliseconds(1);  // time without another pause
  Action action = Action::kDrop;
};

}  // namespace tokamak::sim
