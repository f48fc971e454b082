// RemoteDirectory asks another node's directory, over calls of the same transport that moves the objects.
//
// The node that serves has a DirectoryServer (server.h) before its LocalDirectory. A reply that makes no sense counts as no
// reply (kUnavailable).
// Locates that wait are asked together, see waits.h.
// Thread rule: the loop of the Caller.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lib/base/codec.h"
#include "lib/base/event_loop.h"
#include "lib/directory/directory.h"
#include "lib/directory/remote/messages.h"
#include "lib/directory/remote/waits.h"
#include "lib/transport/caller.h"
#include "lib/verbs/types.h"

namespace tokamak::directory {

class RemoteDirectory final : public Directory {
 public:
  // `loop` and `caller` must outlive it. `server` is where the serving node's first engine listens.
  RemoteDirectory(base::EventLoop& loop, transport::Caller& caller, const verbs::Address& server)
      : loop_(loop),
        caller_(caller),
        server_(server),
        waits_(loop, caller.max_call_size(),
               [this](const base::Writer& request, base::Duration deadline, RemoteWaits::Read read) {
                 Ask(request, deadline, std::move(read));
               }),
        alive_(std::make_shared<char>()) {}
  RemoteDirectory(const RemoteDirectory&) = delete;
  RemoteDirectory& operator=(const RemoteDirectory&) = delete;

  void Join(const NodeInfo& node, base::Duration lease, base::Duration deadline, JoinCallback done) override;
  void Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline, StatusCallback done) override;
  void Announce(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size, const NodeId& node,
                base::Duration deadline, StatusCallback done) override;
  void Withdraw(const base::ObjectId& id, const NodeId& node, base::Duration deadline, StatusCallback done) override;
  void Locate(const base::ObjectId& id, base::Duration wait, base::Duration deadline, LocateCallback done) override;
  void Nodes(base::Duration deadline, NodesCallback done) override;

 private:
  // What a series of requests brought together so far.
  struct NodesSoFar {
    base::Time deadline;
    std::vector<NodeInfo> nodes;
    NodesCallback done;
  };

  // `read` gets the status and, where that is ok, what follows it in the reply.
  void Ask(const base::Writer& request, base::Duration deadline,
           std::function<void(const absl::Status&, base::Reader&)> read);
  void AskStatus(const base::Writer& request, base::Duration deadline, StatusCallback done);
  void AskNodes(std::shared_ptr<NodesSoFar> so_far);
  static absl::Status ReadNodes(base::Reader& reader, std::vector<NodeInfo>& nodes, bool* more);

  base::EventLoop& loop_;
  transport::Caller& caller_;
  const verbs::Address server_;
  RemoteWaits waits_;
  const std::shared_ptr<char> alive_;  // calls that are answered after we are gone look here
};

}  // namespace tokamak::directory
