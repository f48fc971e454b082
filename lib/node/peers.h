// Peers is the node's address book: who is alive, where their engines listen, and who is better left alone for a while.
//
// Addresses come from the directory and are asked for again when a name is unknown. A peer that failed is passed over for a
// back-off that doubles with each failure, while others hold the object; a success clears it.
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/event_loop.h"
#include "lib/directory/directory.h"
#include "lib/verbs/types.h"

namespace tokamak::node {

struct PeersOptions {
  base::Duration directory_deadline = base::Seconds(2);
  base::Duration first_back_off = base::Milliseconds(100);
  base::Duration max_back_off = base::Seconds(10);
  uint32_t max_pulls = 64;  // at once from one peer
};

class Peers final {
 public:
  struct Peer {
    uint64_t incarnation = 0;
    std::vector<verbs::Address> engines;
    uint32_t pulls = 0;       // running now
    base::Duration back_off;  // zero after a success
    base::Time shunned_until;
  };

  Peers(base::EventLoop& loop, directory::Directory& directory, const PeersOptions& options)
      : loop_(loop), directory_(directory), options_(options) {}

  // nullptr: not known; ask Refresh. The pointer is valid until the next task.
  Peer* Find(const directory::NodeId& id);

  // May be pulled from now: known, not shunned, below max_pulls.
  bool Ready(const directory::NodeId& id);

  void Succeeded(const directory::NodeId& id);
  void Failed(const directory::NodeId& id);

  // Asks the directory for all nodes; `done` runs when the book is up to date, or could not be brought so. Several at once
  // share one question.
  void Refresh(std::function<void(const absl::Status&)> done);

  // As of the last Refresh, by id.
  const std::vector<directory::NodeInfo>& nodes() const { return nodes_; }

 private:
  void Update(std::vector<directory::NodeInfo> nodes);

  base::EventLoop& loop_;
  directory::Directory& directory_;
  const PeersOptions options_;
  std::map<directory::NodeId, Peer> peers_;
  std::vector<directory::NodeInfo> nodes_;
  std::vector<std::function<void(const absl::Status&)>> waiting_;
};

}  // namespace tokamak::node
