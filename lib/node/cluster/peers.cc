#include "lib/node/cluster/peers.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::node {

namespace {

// Grows with the square of the nodes: their watches ask for 20,000 entries a second in all.
constexpr base::Duration kWatchForEachPair = base::Microseconds(50);

}  // namespace

const Peers::Peer* Peers::Find(const directory::NodeId& id) const {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

Peers::Use Peers::UseOf(const directory::NodeId& id) const {
  const Peer* peer = Find(id);
  if (peer == nullptr) return Use::kUnknown;
  if (peer->back_off > base::Duration() && loop_.Now() < peer->shunned_until) return Use::kShunned;
  return peer->pulls < options_.max_pulls ? Use::kReady : Use::kBusy;
}

std::vector<directory::NodeId> Peers::Names() const {
  std::vector<directory::NodeId> names;
  names.reserve(peers_.size());
  for (const auto& [id, peer] : peers_) names.push_back(id);
  return names;
}

void Peers::Begin(const directory::NodeId& id) {
  CHECK(UseOf(id) == Use::kReady);
  ++peers_[id].pulls;
}

void Peers::Ended(const directory::NodeId& id, End end) {
  const auto found = peers_.find(id);
  CHECK(found != peers_.end());
  Peer& peer = found->second;
  CHECK_GT(peer.pulls, 0u);
  --peer.pulls;
  const bool failed_before = peer.back_off > base::Duration();
  if (end == End::kOk && failed_before) {
    peer.back_off = base::Duration();
    Tell(id, PeerChange::kAnswers);
  }
  if (end != End::kFailed) return;
  peer.suspect = true;
  // Pulls failing together count once.
  if (failed_before && loop_.Now() < peer.shunned_until) return;
  if (!failed_before) Tell(id, PeerChange::kFails);
  peer.back_off = std::clamp(peer.back_off * 2, options_.first_back_off, options_.max_back_off);
  peer.shunned_until = loop_.Now() + peer.back_off;
}

void Peers::RestBulk(const directory::NodeId& id) { peers_[id].bulk_rests_until = loop_.Now() + options_.bulk_rest; }

Peers::~Peers() {
  while (!askers_.empty()) askers_.PopFront()->peers = nullptr;
}

Peers::Asker::~Asker() {
  if (peers == nullptr) return;
  peers->askers_.Remove(this);
  if (peers->askers_.empty()) peers->asking_.reset();
}

void Peers::Watch() {
  if (options_.watch_every <= base::Duration()) return;
  const auto nodes = static_cast<int64_t>(peers_.size());
  watch_timer_ = loop_.RunAfter(std::max(options_.watch_every, kWatchForEachPair * (nodes * nodes)),
                                [this] { watch_ = Refresh([this](const absl::Status&) { Watch(); }); });
}

base::Pending Peers::Refresh(std::function<void(const absl::Status&)> done) {
  auto asker = std::make_unique<Asker>(*this, std::move(done));
  askers_.PushBack(asker.get());
  if (asking_ == nullptr) {
    asking_ = directory_.Roster(
        options_.directory_deadline,
        [this](const absl::StatusOr<std::vector<directory::RosterEntry>>& roster) { Refreshed(roster); });
  }
  return asker;
}

// An asker from inside an answer asks anew.
void Peers::Refreshed(const absl::StatusOr<std::vector<directory::RosterEntry>>& roster) {
  if (roster.ok()) news_.Read(*roster, loop_.Now());
  if (roster.ok()) Update(*roster);
  const base::Pending asked = std::move(asking_);
  const base::Lifetime::Watch watch = lifetime_.Watched();
  for (size_t left = askers_.size(); left > 0 && !askers_.empty(); --left) {
    Asker& asker = *askers_.PopFront();
    asker.peers = nullptr;
    const auto done = std::move(asker.done);
    done(roster.status());  // may drop us
    if (watch.over()) return;
  }
}

void Peers::Update(const std::vector<directory::RosterEntry>& roster) {
  std::map<directory::NodeId, Peer> updated;
  for (const directory::RosterEntry& entry : roster) {
    if (entry.liveness != directory::Liveness::kAlive) continue;
    const directory::NodeInfo& node = entry.node;
    Peer peer;
    // A restarted peer starts without failures; its running pulls still count.
    if (const Peer* known = Find(node.id)) {
      peer.pulls = known->pulls;
      if (known->incarnation == node.incarnation) peer = *known;
    }
    peer.incarnation = node.incarnation;
    peer.suspect = false;
    peer.engines.clear();
    for (const std::string& text : node.engines) {
      if (const auto address = verbs::Address::Parse(text); address.ok()) peer.engines.push_back(*address);
    }
    if (!peer.engines.empty()) updated.emplace(node.id, std::move(peer));
  }
  for (const auto& [id, peer] : peers_) {
    if (peer.pulls > 0) updated.emplace(id, peer);  // gone, but pulls still run
  }
  peers_ = std::move(updated);
}

}  // namespace tokamak::node
