#include "sim/scenario/fabric_ports.h"

#include <map>
#include <utility>

namespace tokamak::sim {

std::vector<FabricPort> ListPorts(SwitchedFabric& fabric) {
  const Topology& topology = fabric.topology();
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> peers;
  for (const Topology::Cable& cable : topology.cables) {
    for (size_t end = 0; end < 2; ++end) {
      peers[{cable.ends[end].node, cable.ends[end].port}] = cable.ends[1 - end].node;
    }
  }
  std::vector<FabricPort> ports;
  const auto add = [&](uint32_t node, uint32_t port, EgressPort* egress) {
    ports.push_back(
        {topology.NameOf(node), port, topology.NameOf(peers[{node, port}]), topology.is_host(node), egress});
  };
  uint32_t interface = 0;
  for (uint32_t host = 0; host < topology.hosts.size(); ++host) {
    for (uint32_t port = 0; port < topology.hosts[host].addresses.size(); ++port) {
      add(host, port, &fabric.interface_at(interface++).egress());
    }
  }
  for (uint32_t i = 0; i < fabric.switches(); ++i) {
    const auto node = static_cast<uint32_t>(topology.hosts.size()) + i;
    for (uint32_t port = 0; port < fabric.switch_at(i).ports(); ++port) {
      add(node, port, &fabric.switch_at(i).egress(port));
    }
  }
  return ports;
}

}  // namespace tokamak::sim
