// OwnNode is a node in the benchmark's own process, by the daemon's wiring, on the benchmark's
// loop.
//
// Thread rule: the loop's thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/daemon/daemon.h"
#include "lib/os/epoll_loop.h"

namespace tokamak::bench {

class OwnNode final {
 public:
  // `flags` as tokd takes them; the loop gets the detection that they name. Wrong flags are also
  // reported on standard error. `loop` must outlive it.
  static absl::StatusOr<std::unique_ptr<OwnNode>> Start(os::EpollLoop& loop, const std::vector<std::string>& flags);

  node::Node& node() { return daemon_->node(); }
  base::PhaseLog* phases() { return daemon_->phases(); }  // of --trace; null: none

 private:
  explicit OwnNode(std::unique_ptr<daemon::Daemon> daemon) : daemon_(std::move(daemon)) {}

  const std::unique_ptr<daemon::Daemon> daemon_;
};

}  // namespace tokamak::bench
