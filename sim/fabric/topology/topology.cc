#include "sim/fabric/topology/topology.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::sim {
namespace {

absl::Status Wrong(const std::string& what) { return absl::InvalidArgumentError(what); }

// Counts ports; every one has one cable.
absl::Status CheckPorts(const Topology& topology, std::vector<uint32_t>* ports) {
  ports->assign(topology.nodes(), 0);
  std::set<std::pair<uint32_t, uint32_t>> used;
  for (const Topology::Cable& cable : topology.cables) {
    for (const Topology::End& end : cable.ends) {
      if (end.node >= topology.nodes())
        return Wrong(absl::StrCat("a cable ends at node ", end.node, ", of which there is none"));
      const std::string& name = topology.NameOf(end.node);
      if (topology.is_host(end.node) && end.port >= topology.hosts[end.node].addresses.size()) {
        return Wrong(absl::StrCat("a cable ends at port ", end.port, " of host '", name, "', which has ",
                                  topology.hosts[end.node].addresses.size()));
      }
      if (!used.emplace(end.node, end.port).second) {
        return Wrong(absl::StrCat("port ", end.port, " of '", name, "' has two cables"));
      }
      (*ports)[end.node] = std::max((*ports)[end.node], end.port + 1);
    }
    if (cable.ends[0].node == cable.ends[1].node) {
      return Wrong(absl::StrCat("a cable connects '", topology.NameOf(cable.ends[0].node), "' with itself"));
    }
  }
  for (uint32_t node = 0; node < topology.nodes(); ++node) {
    const bool is_host = topology.is_host(node);
    if (is_host) (*ports)[node] = static_cast<uint32_t>(topology.hosts[node].addresses.size());
    for (uint32_t port = 0; port < (*ports)[node]; ++port) {
      if (used.count({node, port}) != 0) continue;
      return Wrong(absl::StrCat("port ", port, " of '", topology.NameOf(node), "' dangles: it has no cable"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const Topology& topology) {
  std::set<std::string> names;
  for (uint32_t node = 0; node < topology.nodes(); ++node) {
    const std::string& name = topology.NameOf(node);
    if (name.empty()) return Wrong("a node has no name");
    if (!names.insert(name).second) return Wrong(absl::StrCat("two nodes are called '", name, "'"));
  }
  return absl::OkStatus();
}

absl::Status CheckAddresses(const Topology& topology) {
  std::map<std::array<uint8_t, 16>, std::string> owners;
  for (const Topology::Host& host : topology.hosts) {
    if (host.addresses.empty()) return Wrong(absl::StrCat("host '", host.name, "' has no interface"));
    for (const verbs::Address& address : host.addresses) {
      const auto [entry, is_new] = owners.emplace(address.ip, host.name);
      if (is_new) continue;
      return Wrong(
          absl::StrCat("hosts '", entry->second, "' and '", host.name, "' have the same address ", address.ToString()));
    }
  }
  return absl::OkStatus();
}

// Checks that a way leads from each interface to every other.
absl::Status CheckConnected(const Topology& topology) {
  std::vector<uint32_t> leader(topology.nodes());
  for (uint32_t i = 0; i < leader.size(); ++i) leader[i] = i;
  const auto find = [&leader](uint32_t node) {
    while (leader[node] != node) node = leader[node] = leader[leader[node]];
    return node;
  };
  for (const Topology::Cable& cable : topology.cables) leader[find(cable.ends[0].node)] = find(cable.ends[1].node);
  for (uint32_t node = 1; node < topology.nodes(); ++node) {
    if (find(node) == find(0)) continue;
    return Wrong(absl::StrCat("nothing leads from '", topology.NameOf(0), "' to '", topology.NameOf(node), "'"));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const Topology& topology) {
  for (const Topology::SwitchNode& node : topology.switches) {
    if (absl::Status s = node.options.ecn.Check(); !s.ok()) {
      return Wrong(absl::StrCat("switch '", node.name, "': ", s.message()));
    }
  }
  for (const Topology::Cable& cable : topology.cables) {
    for (const LossOptions& loss : cable.loss) {
      if (absl::Status s = loss.Check(); !s.ok()) {
        return Wrong(absl::StrCat("the cable from '", topology.NameOf(cable.ends[0].node), "' to '",
                                  topology.NameOf(cable.ends[1].node), "': ", s.message()));
      }
    }
    if (cable.parameters.delay < base::Duration()) return Wrong("a cable's delay is negative");
  }
  return absl::OkStatus();
}

}  // namespace

const std::string& Topology::NameOf(uint32_t node) const {
  return is_host(node) ? hosts[node].name : switches[node - hosts.size()].name;
}

uint32_t Topology::interfaces() const {
  size_t sum = 0;
  for (const Host& host : hosts) sum += host.addresses.size();
  return static_cast<uint32_t>(sum);
}

absl::Status Topology::Check() const {
  if (hosts.empty()) return Wrong("there is no host");
  if (absl::Status s = CheckNames(*this); !s.ok()) return s;
  if (absl::Status s = CheckAddresses(*this); !s.ok()) return s;
  std::vector<uint32_t> ports;
  if (absl::Status s = CheckPorts(*this, &ports); !s.ok()) return s;
  if (absl::Status s = CheckConnected(*this); !s.ok()) return s;
  return CheckOptions(*this);
}

}  // namespace tokamak::sim
