// AskedDirectory is the directory of another node, asked through this node's first engine.
//
// Thread rule: the control loop.
#pragma once

#include "lib/directory/remote/remote.h"
#include "lib/node/machine.h"

namespace tokamak::node {

class AskedDirectory final : public DirectoryHost {
 public:
  // `loop` and `engine` must outlive it.
  AskedDirectory(base::EventLoop& loop, Engine& engine, const verbs::Address& server, base::Random random)
      : caller_(engine, Service::kDirectory),
        programs_(engine.programs(), Service::kDirectory),
        remote_(loop, caller_, programs_, server, random) {}

  void MoveTo(const verbs::Address& server) { remote_.MoveTo(server); }
  bool unanswered() const { return remote_.unanswered(); }

  directory::Directory& directory() override { return remote_; }
  void Serve(Node&) override {}

 private:
  using Remote = directory::RemoteDirectory;
  // A node's calls of itself: its batches, a Join or a Leave, and a look at what the directory
  // knows.
  static_assert(Membership::kBatchesInFlight + 4 <= Remote::kMostCallsOfNode && Remote::kMostCalls <= kOwnCalls,
                "what a node says of itself is never refused");

  ServiceCaller caller_;
  ServiceCaller programs_;
  Remote remote_;
};

}  // namespace tokamak::node
