// RealLoop is where the verbs interface's EventLoop, which knows no descriptors, becomes the one
// that has them.
//
// libibverbs and librdmacm tell of events through descriptors. So completion queues, listeners and
// connections of this backend need loops that are os::EpollLoops: anything else is a mistake of the
// wiring.
#pragma once

#include "lib/base/event_loop.h"
#include "lib/os/epoll_loop.h"

namespace tokamak::verbs::ibv {

// Dies where `loop` is of another kind.
os::EpollLoop& RealLoop(base::EventLoop& loop);

}  // namespace tokamak::verbs::ibv
