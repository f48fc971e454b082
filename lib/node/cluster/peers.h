// Peers is the node's address book: which nodes are alive, where their engines listen, and which
// are passed over for a while.
//
// Addresses are refreshed for an unknown name or after a failure: the node may have restarted
// elsewhere. A failed peer is passed over for a back-off that doubles until a success. If its bulk
// engine is not reached (closed port), all goes between the first engines for a while. At most
// max_pulls run from one peer. Thread rule: the control loop.
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

// Pulls at once from one peer, over all engines; beyond our share it refuses.
constexpr uint32_t kMaxPullsOfPeer = 64;
static_assert(kMaxPullsOfPeer <= transport::kMaxTransfers / transport::kPeerPart);

struct PeersOptions {
  base::Duration directory_deadline = base::Seconds(2);
  base::Duration first_back_off = base::Milliseconds(100);
  base::Duration max_back_off = base::Seconds(10);
  base::Duration bulk_rest = base::Seconds(10);
  uint32_t max_pulls = kMaxPullsOfPeer;
  // Period of refreshes for PeerNews; longer with many nodes. Zero: never.
  base::Duration watch_every;
  base::Duration believe_left;  // PeerNews: a node not named for this long has left
  // May be empty. Runs within Peers' calls, and must not call it.
  std::function<void(const directory::NodeId&, PeerChange)> on_change;
};

class Peers final {
 public:
  struct Peer {
    uint64_t incarnation = 0;
    std::vector<verbs::Address> engines;  // not empty
    uint32_t pulls = 0;                   // running now
    bool suspect = false;                 // failed since the last refresh
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

  // Returns nullptr if unknown; valid until the next task.
  const Peer* Find(const directory::NodeId& id) const;
  Use UseOf(const directory::NodeId& id) const;
  std::vector<directory::NodeId> Names() const;

  // kFailed: not reached, or too slow.
  enum class End { kOk, kFailed, kOther };
  void Begin(const directory::NodeId& id);
  void Ended(const directory::NodeId& id, End end);
  // Notes that its bulk engine was not reached.
  void RestBulk(const directory::NodeId& id);
  bool BulkRests(const Peer& peer) const { return loop_.Now() < peer.bulk_rests_until; }

  // Keeps the book up to date, see PeersOptions::watch_every.
  void Watch();

  // Asks the directory for all nodes; `done` runs later. Askers share one question.
  [[nodiscard]] base::Pending Refresh(std::function<void(const absl::Status&)> done);

 private:
  // On the list until answered or dropped.
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
