#include "sim/fabric/topology/routes.h"

#include <map>

namespace tokamak::sim {
namespace {

constexpr uint32_t kFar = UINT32_MAX;

// A way out of a node.
struct Way {
  uint32_t port;
  uint32_t node;
  uint32_t node_port;
};

using Ways = std::vector<std::vector<Way>>;

Ways WaysOf(const Topology& topology, const std::vector<bool>& up) {
  Ways ways(topology.nodes());
  for (size_t i = 0; i < topology.cables.size(); ++i) {
    if (!up[i]) continue;
    const auto& [a, b] = topology.cables[i].ends;
    ways[a.node].push_back({a.port, b.node, b.port});
    ways[b.node].push_back({b.port, a.node, a.port});
  }
  return ways;
}

// Returns cables from `start`.
std::vector<uint32_t> Distances(const Topology& topology, const Ways& ways, uint32_t start) {
  std::vector<uint32_t> distance(topology.nodes(), kFar);
  std::vector<uint32_t> line = {start};
  distance[start] = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    for (const Way& way : ways[line[i]]) {
      if (topology.is_host(way.node) || distance[way.node] != kFar) continue;
      distance[way.node] = distance[line[i]] + 1;
      line.push_back(way.node);
    }
  }
  return distance;
}

// Under construction; each set of ports is kept once.
class Tables final {
 public:
  Tables(const Topology& topology, const base::Random& random)
      : topology_(topology), groups_(topology.switches.size()) {
    for (size_t i = 0; i < topology.switches.size(); ++i) {
      tables_.emplace_back(random.Fork(i).Next(), topology.interfaces());
    }
  }

  void Set(uint32_t node, const std::vector<uint32_t>& ports, const std::vector<uint32_t>& destinations) {
    const size_t index = node - topology_.hosts.size();
    const auto [entry, is_new] = groups_[index].emplace(ports, 0);
    if (is_new) entry->second = tables_[index].AddGroup(ports);
    for (uint32_t destination : destinations) tables_[index].Set(destination, entry->second);
  }

  std::vector<RouteTable> Take() { return std::move(tables_); }

 private:
  const Topology& topology_;
  std::vector<RouteTable> tables_;
  std::vector<std::map<std::vector<uint32_t>, uint32_t>> groups_;
};

}  // namespace

std::vector<RouteTable> FindRoutes(const Topology& topology, const std::vector<bool>& up, const base::Random& random) {
  const Ways ways = WaysOf(topology, up);
  Tables tables(topology, random);
  std::vector<uint32_t> first_interface;
  uint32_t interfaces = 0;
  for (const Topology::Host& host : topology.hosts) {
    first_interface.push_back(interfaces);
    interfaces += static_cast<uint32_t>(host.addresses.size());
  }
  const auto hosts = static_cast<uint32_t>(topology.hosts.size());
  for (uint32_t last = hosts; last < topology.nodes(); ++last) {
    // Destinations at this node, reached alike from everywhere else.
    std::vector<uint32_t> here;
    for (const Way& way : ways[last]) {
      if (!topology.is_host(way.node)) continue;
      here.push_back(first_interface[way.node] + way.node_port);
      tables.Set(last, {way.port}, {here.back()});
    }
    if (here.empty()) continue;
    const std::vector<uint32_t> distance = Distances(topology, ways, last);
    for (uint32_t node = hosts; node < topology.nodes(); ++node) {
      if (node == last || distance[node] == kFar) continue;
      std::vector<uint32_t> ports;
      for (const Way& way : ways[node]) {
        if (!topology.is_host(way.node) && distance[way.node] + 1 == distance[node]) ports.push_back(way.port);
      }
      tables.Set(node, ports, here);
    }
  }
  return tables.Take();
}

}  // namespace tokamak::sim
