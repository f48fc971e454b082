// DirectoryHost opens the directory that --directory names, and serves it to other nodes where it is this node's own.
//
// Thread rule: the control loop.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "lib/daemon/options.h"
#include "lib/directory/directory.h"
#include "lib/node/engine.h"
#include "lib/node/services.h"
#include "lib/os/epoll_loop.h"

namespace tokamak::daemon {

class DirectoryHost {
 public:
  virtual ~DirectoryHost() = default;
  virtual directory::Directory& directory() = 0;

  // Registers what other nodes may ask of this one; nothing unless the directory is served here.
  virtual void Serve(node::Services& services) = 0;
};

// `loop` and `link`, the first engine's, must outlive it.
absl::StatusOr<std::unique_ptr<DirectoryHost>> OpenDirectory(os::EpollLoop& loop, node::EngineLink& link,
                                                             const DirectoryChoice& choice);

}  // namespace tokamak::daemon
