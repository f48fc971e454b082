// Generators draw the topologies of studies. Numbers are at least 1; fat-tree's k is even.
#pragma once

#include <cstdint>

#include "sim/fabric/link/link.h"
#include "sim/fabric/switch/switch.h"
#include "sim/fabric/topology/topology.h"

namespace tokamak::sim {

struct GeneratorOptions {
  LinkParameters host;    // between hosts and switches
  LinkParameters uplink;  // between switches
  SwitchOptions switches;
};

// Two hosts and a cable.
Topology Pair(const GeneratorOptions& options);

// Hosts around one switch.
Topology Star(const GeneratorOptions& options, uint32_t hosts);

// A switch for each side, with its hosts, and one cable between them.
Topology Dumbbell(const GeneratorOptions& options, uint32_t hosts_per_side);

// Switches in a row, with hosts at each: traffic over all cables shares every one with traffic over
// one.
Topology ParkingLot(const GeneratorOptions& options, uint32_t switches, uint32_t hosts_per_switch);

// Hosts at leaves, every leaf at every spine.
Topology LeafSpine(const GeneratorOptions& options, uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf);

// k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k^3/4 hosts at full
// bisection (Al-Fares et al. 2008).
Topology FatTree(const GeneratorOptions& options, uint32_t k);

// Hosts with a NIC for each rail. In each group of hosts rail r of all meets at one switch, and all
// these at the spines.
Topology RailOptimised(const GeneratorOptions& options, uint32_t hosts, uint32_t rails, uint32_t hosts_per_group,
                       uint32_t spines);

}  // namespace tokamak::sim
