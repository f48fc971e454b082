// Environment is shared by all parts of one fabric.
#pragma once

#include "lib/base/event_loop.h"
#include "sim/fabric/link/frame_pool.h"
#include "sim/fabric/link/observer.h"

namespace tokamak::sim {

struct Environment {
  base::EventLoop& loop;  // the network's own
  FramePool& frames;
  Observer* observer = nullptr;  // or null
};

}  // namespace tokamak::sim
