// Environment is what all parts of one fabric share.
#pragma once

#include "lib/base/event_loop.h"
#include "sim/fabric/link/frame_pool.h"
#include "sim/fabric/link/observer.h"

namespace tokamak::sim {

struct Environment {
  base::EventLoop& loop;  // the network's own
  FramePool& frames;
  Observer* observer = nullptr;  // or nobody watches
};

}  // namespace tokamak::sim
