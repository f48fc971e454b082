// ResolvedDirectory is another node's directory, known by its host name, which is looked up again
// while the node does not answer.
//
// Each unanswered call tries the next of several addresses. Thread rule: the control loop.
#pragma once

#include "lib/base/random.h"
#include "lib/base/text/host_port.h"
#include "lib/node/directories/asked_directory.h"
#include "lib/node/machine.h"
#include "lib/os/sockets/name_lookup.h"

namespace tokamak::daemon {

class ResolvedDirectory final : public node::DirectoryHost {
 public:
  // `loop` and `engine` must outlive it.
  ResolvedDirectory(base::EventLoop& loop, node::Engine& engine, const base::HostPort& server, base::Random random);

  directory::Directory& directory() override { return asked_.directory(); }
  void Serve(node::Node&) override {}

 private:
  void Look();
  void LookLater(base::Duration after);
  void Found(const absl::StatusOr<os::NameLookup::Addresses>& addresses);

  base::EventLoop& loop_;
  const base::HostPort server_;
  base::Random random_;
  node::AskedDirectory asked_;
  os::NameLookup names_;
  std::string trouble_;  // logged last
  uint64_t turn_ = 0;
  base::Pending lookup_;
  base::Timer look_;
};

}  // namespace tokamak::daemon
