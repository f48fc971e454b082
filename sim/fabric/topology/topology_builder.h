// TopologyBuilder draws a Topology node by node and cable by cable, and hands out addresses
// (10.0.0.1, 10.0.0.2, ...) and ports (0, 1, ...) in order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/verbs/types.h"
#include "sim/fabric/topology/topology.h"

namespace tokamak::sim {

class TopologyBuilder final {
 public:
  // All hosts come before the first switch.
  uint32_t AddHost(std::string name, uint32_t interfaces = 1);
  uint32_t AddHost(std::string name, std::vector<verbs::Address> addresses);
  uint32_t AddSwitch(std::string name, const SwitchOptions& options);

  void Connect(uint32_t a, uint32_t b, const LinkParameters& parameters);
  void Connect(Topology::Cable cable);

  // Returns the port after the last with a cable.
  Topology::End NextPort(uint32_t node) const { return {node, next_port_[node]}; }

  Topology& topology() { return topology_; }

 private:
  Topology topology_;
  std::vector<uint32_t> next_port_;
  uint32_t interfaces_ = 0;
};

// Returns 10.0.0.1 for 0.
verbs::Address AddressOfInterface(uint32_t number);

}  // namespace tokamak::sim
