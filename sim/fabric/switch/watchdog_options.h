// What a switch does about a queue that is paused and never released: a broken host, or switches
// that wait for each other in a circle.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::sim {

struct WatchdogOptions {
  enum class Action : uint8_t {
    kDrop,     // what is in the queue, and what comes for it, is dropped
    kForward,  // the pause is disregarded
  };

  base::Duration detection;                            // paused for as long as this without a break; 0: no watchdog
  base::Duration restoration = base::Milliseconds(1);  // after this long without another pause, all is well again
  Action action = Action::kDrop;
};

}  // namespace tokamak::sim
