// RealLoop turns the verbs interface's EventLoop, which knows no descriptors, into the one that has
// them.
//
// libibverbs and librdmacm report events through descriptors; another loop is a mistake of the
// wiring.
#pragma once

#include "lib/base/event_loop.h"
#include "lib/os/epoll_loop.h"

namespace tokamak::verbs::ibv {

// Dies if `loop` is of another kind.
os::EpollLoop& RealLoop(base::EventLoop& loop);

}  // namespace tokamak::verbs::ibv
