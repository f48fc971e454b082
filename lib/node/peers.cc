#include "lib/node/peers.h"

#include <algorithm>
#include <utility>

namespace tokamak::node {

Peers::Peer* Peers::Find(const directory::NodeId& id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

bool Peers::Ready(const directory::NodeId& id) {
  const Peer* peer = Find(id);
  if (peer == nullptr || peer->engines.empty() || peer->pulls >= options_.max_pulls) return false;
  return peer->back_off == base::Duration() || peer->shunned_until <= loop_.Now();
}

void Peers::Succeeded(const directory::NodeId& id) {
  if (Peer* peer = Find(id)) peer->back_off = base::Duration();
}

void Peers::Failed(const directory::NodeId& id) {
  Peer* peer = Find(id);
  if (peer == nullptr) return;
  const base::Duration doubled = peer->back_off * 2;
  peer->back_off = std::min(options_.max_back_off, std::max(options_.first_back_off, doubled));
  peer->shunned_until = loop_.Now() + peer->back_off;
}

void Peers::Refresh(std::function<void(const absl::Status&)> done) {
  waiting_.push_back(std::move(done));
  if (waiting_.size() > 1) return;
  directory_.Nodes(options_.directory_deadline, [this](absl::StatusOr<std::vector<directory::NodeInfo>> nodes) {
    if (nodes.ok()) Update(*std::move(nodes));
    const auto waiting = std::exchange(waiting_, {});
    for (const auto& callback : waiting) callback(nodes.status());
  });
}

void Peers::Update(std::vector<directory::NodeInfo> nodes) {
  std::map<directory::NodeId, Peer> updated;
  for (const directory::NodeInfo& node : nodes) {
    Peer& peer = updated[node.id];
    // A peer that was restarted starts with a clean sheet; pulls that still run from its earlier life are counted on.
    if (const Peer* known = Find(node.id)) {
      peer.pulls = known->pulls;
      if (known->incarnation == node.incarnation) peer = *known;
    }
    peer.incarnation = node.incarnation;
    peer.engines.clear();
    for (const std::string& text : node.engines) {
      if (const auto address = verbs::Address::Parse(text); address.ok()) peer.engines.push_back(*address);
    }
  }
  for (const auto& [id, peer] : peers_) {
    if (peer.pulls > 0) updated.emplace(id, peer);  // gone from the directory, but still being pulled from
  }
  peers_ = std::move(updated);
  nodes_ = std::move(nodes);
}

}  // namespace tokamak::node
