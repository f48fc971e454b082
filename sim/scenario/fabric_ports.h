// FabricPorts lists the ports of a fabric, of hosts and switches alike, as reports name them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/fabric/switched_fabric.h"

namespace tokamak::sim {

struct FabricPort {
  std::string node;
  uint32_t port = 0;
  std::string peer;
  bool is_host = false;
  EgressPort* egress = nullptr;
  std::string name() const { return node + ":" + std::to_string(port); }
};

// Hosts first; the fabric must outlive them.
std::vector<FabricPort> ListPorts(SwitchedFabric& fabric);

}  // namespace tokamak::sim
