#include "lib/daemon/metrics/node_snapshot.h"

namespace tokamak::daemon {

std::string NodeSnapshot::WhyNotReady() const {
  if (draining) return "draining: the node leaves the cluster";
  if (fenced) return "fenced: the directory was out of reach for longer than lease and grace";
  if (directory_away) return "the directory is out of reach";
  if (!joined) return "the directory has not answered yet";
  return "";
}

NodeSnapshot SnapshotOf(const node::Node& node) {
  NodeSnapshot snapshot;
  snapshot.node = node.options().id;
  snapshot.device = node.options().device;
  snapshot.store = node.store().statistics();
  snapshot.programs = node.store().usage();
  snapshot.pulls_running = node.pulls().running();
  snapshot.pulls = node.pulls().counters();
  snapshot.latency = node.latency();
  snapshot.pins_of_peers = node.pins_of_peers();
  snapshot.pins_of_peers_total = node.pins_of_peers_total();
  snapshot.brought_to_peers_total = node.brought_to_peers_total();
  snapshot.location_cache_objects = node.places().size();
  const node::Membership& membership = node.membership();
  snapshot.joined = membership.joined();
  snapshot.directory_away = membership.directory_away();
  snapshot.fenced = membership.fenced();
  snapshot.directory_updates_behind = membership.behind();
  snapshot.membership = membership.counters();
  return snapshot;
}

}  // namespace tokamak::daemon
