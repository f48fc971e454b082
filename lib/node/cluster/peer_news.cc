#include "lib/node/cluster/peer_news.h"

#include <iterator>
#include <set>

namespace tokamak::node {

void PeerNews::Read(absl::Span<const directory::RosterEntry> roster, base::Time now) {
  std::set<directory::NodeId> named;
  for (const directory::RosterEntry& entry : roster) {
    Note(entry);
    named.insert(entry.node.id);
  }
  for (auto known = known_.begin(); known != known_.end();) {
    const bool stays = named.count(known->first) != 0 || NoteUnnamed(known->first, known->second, now);
    known = stays ? std::next(known) : known_.erase(known);
  }
}

void PeerNews::Note(const directory::RosterEntry& entry) {
  const directory::NodeInfo& node = entry.node;
  const auto [found, is_new] = known_.try_emplace(node.id, Known{Standing::kAlive, node.incarnation, {}});
  Known& known = found->second;
  const Standing before = known.standing;
  known.standing = entry.liveness == directory::Liveness::kAlive ? Standing::kAlive : Standing::kSilent;
  const bool is_another_life = std::exchange(known.incarnation, node.incarnation) != node.incarnation;
  if (known.standing == Standing::kSilent) {
    if (is_new || is_another_life || before != Standing::kSilent) Say(node.id, PeerChange::kSilent);
  } else if (is_another_life) {
    Say(node.id, PeerChange::kRestarted);
  } else if (before == Standing::kSilent) {
    Say(node.id, PeerChange::kBack);
  }
}

// True if it stays known.
bool PeerNews::NoteUnnamed(const directory::NodeId& id, Known& known, base::Time now) {
  if (known.standing == Standing::kSilent) return false;
  if (known.standing == Standing::kAlive) known.unnamed_since = now;
  known.standing = Standing::kUnnamed;
  if (now - known.unnamed_since < believe_) return true;
  Say(id, PeerChange::kLeft);
  return false;
}

}  // namespace tokamak::node
