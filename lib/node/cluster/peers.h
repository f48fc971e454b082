// Peers is the node's address book: which nodes are alive, where their engines listen, and which
// are passed over for a while.
//
// Addresses come from the directory, and are refreshed when a name is unknown or its node has
// failed us: it may have been restarted elsewhere. A peer that failed is passed over for a back-off
// that doubles with each further failure; a success clears it. If an engine for bulk was not
// reached (its port may be closed), all goes between the first engines for a while. From one peer
// at most max_pulls run at once; further ones wait for their turn.
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/directory/directory.h"
#include "lib/node/cluster/peer_news.h"
#include "lib/transport/limits.h"
#include "lib/verbs/types.h"

namespace tokamak::node {

// Pulls at once from one peer, over all engines; a peer refuses more than our share.
constexpr uint32_t kMaxPullsOfPeer = 64;
static_assert(kMaxPullsOfPeer <= transport::kMaxTransfers / transport::kPeerPart);

struct PeersOptions {
  base::Duration directory_deadline = base::Seconds(2);
  base::Duration first_back_off = base::Milliseconds(100);
  base::Duration max_back_off = base::Seconds(10);
  base::Duration bulk_rest = base::Seconds(10);
  uint32_t max_pulls = kMaxPullsOfPeer;
  // How often the book is refreshed without need, so that changes are reported; less often with
  // many nodes, as all of them ask. Zero: never.
  base::Duration watch_every;
  base::Duration believe_left;  // a node unnamed for this long has left: PeerNews
  // May be empty. Runs within the calls of Peers, and must not call it.
  std::function<void(const directory::NodeId&, PeerChange)> on_change;
};

class Peers final {
 public:
  struct Peer {
    uint64_t incarnation = 0;
    std::vector<verbs::Address> engines;  // not empty
    uint32_t pulls = 0;                   // running now
    bool suspect = false;                 // failed since it was last looked up
    base::Duration back_off;              // zero after a success
    base::Time shunned_until;             // only with a back-off
    base::Time bulk_rests_until;
  };
  enum class Use {
    kReady,
    kBusy,     // max_pulls run
    kShunned,  // wait, or look it up again
    kUnknown,  // look it up
  };

  Peers(base::EventLoop& loop, directory::Directory& directory, const PeersOptions& options)
      : loop_(loop),
        directory_(directory),
        options_(options),
        news_(options.believe_left, [this](const directory::NodeId& id, PeerChange change) { Tell(id, change); }) {}
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Returns nullptr if not known; valid until the next task.
  const Peer* Find(const directory::NodeId& id) const;
  Use UseOf(const directory::NodeId& id) const;
  // Returns the names of all known nodes, in order.
  std::vector<directory::NodeId> Names() const;

  // kFailed: the peer could not be reached or did not keep up.
  enum class End { kOk, kFailed, kOther };
  void Begin(const directory::NodeId& id);
  void Ended(const directory::NodeId& id, End end);
  // Notes that its engine for bulk was not reached.
  void RestBulk(const directory::NodeId& id);
  bool BulkRests(const Peer& peer) const { return loop_.Now() < peer.bulk_rests_until; }

  // Keeps the book up to date from now on, see PeersOptions::watch_every.
  void Watch();

  // Asks the directory for all nodes; `done` runs later, when the book is up to date or the
  // question failed. Askers share one question.
  [[nodiscard]] base::Pending Refresh(std::function<void(const absl::Status&)> done);

 private:
  // Somebody who waits for the answer; on the list until answered or dropped.
  struct Asker final : base::Handle {
    Asker(Peers& p, std::function<void(const absl::Status&)> d) : peers(&p), done(std::move(d)) {}
    ~Asker() override;

    Peers* peers;  // null: off the list
    std::function<void(const absl::Status&)> done;
    base::Link<Asker> link;
  };

  void Tell(const directory::NodeId& id, PeerChange change) const {
    if (options_.on_change) options_.on_change(id, change);
  }
  void Update(const std::vector<directory::RosterEntry>& roster);
  void Refreshed(const absl::StatusOr<std::vector<directory::RosterEntry>>& roster);

  base::EventLoop& loop_;
  directory::Directory& directory_;
  const PeersOptions options_;
  PeerNews news_;
  std::map<directory::NodeId, Peer> peers_;
  base::IntrusiveList<Asker, &Asker::link> askers_;
  base::Pending asking_;
  base::Timer watch_timer_;
  base::Pending watch_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::node
