// Environment is what all parts of one fabric share.
#pragma once

#include "lib/base/event_loop.h"
#include "sim/fabric/frame_pool.h"
#include "sim/fabric/observer.h"

namespace tokamak::sim {

struct Environment {
  base::EventLoop& loop;  // the network's own
  FramePool& frames;
  Observer* observer = nullptr;  // or nobody watches
};

}  // namespace tokamak::sim
