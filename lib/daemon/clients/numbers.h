// A node's numbers by name, from the table (node_metrics.h): for `tok stat`, and for other nodes.
#pragma once

#include <vector>

#include "lib/daemon/metrics/named_number.h"
#include "lib/daemon/metrics/node_snapshot.h"
#include "lib/node/calls/node_numbers.h"

namespace tokamak::daemon {

// The unit ends a name; _total: since the start. Programs' parts come last: a reply may not hold
// them all.
std::vector<NamedNumber> NumbersForStat(const NodeSnapshot& node);

// Serves views of the cluster. Reads only the devices' number from `node`.
std::vector<node::NodeNumber> NumbersForOthers(const NodeSnapshot& node);

}  // namespace tokamak::daemon
