// The directory that --directory names, opened for a machine.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "lib/daemon/flags/options.h"
#include "lib/node/machine.h"
#include "lib/os/epoll_loop.h"

namespace tokamak::daemon {

// After a restart the directory takes `lease` to learn who holds what. `loop` and `engine`, the
// node's first, must outlive it.
// Thread rule: the control loop.
absl::StatusOr<std::unique_ptr<node::DirectoryHost>> OpenDirectory(os::EpollLoop& loop, node::Engine& engine,
                                                                   const DirectoryChoice& choice, base::Duration lease,
                                                                   base::Random random);

}  // namespace tokamak::daemon
