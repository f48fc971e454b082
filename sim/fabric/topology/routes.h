// Routes are the shortest ways through a topology, by number of cables: for each switch and
// destination all ports on a shortest way. Hosts do not forward.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/random.h"
#include "sim/fabric/switch/route_table.h"
#include "sim/fabric/topology/topology.h"

namespace tokamak::sim {

// Returns a table for each switch. `up`: usable cables. A table's seed depends on the switch's
// place alone. Destinations are interfaces, numbered host by host.
std::vector<RouteTable> FindRoutes(const Topology& topology, const std::vector<bool>& up, const base::Random& random);

}  // namespace tokamak::sim
