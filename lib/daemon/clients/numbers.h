// A node's numbers by name, from the table (node_metrics.h): for `tok stat`, and for other nodes.
#pragma once

#include <vector>

#include "lib/daemon/metrics/named_number.h"
#include "lib/daemon/metrics/node_snapshot.h"
#include "lib/node/calls/node_numbers.h"

namespace tokamak::daemon {

// Names end with their unit. Values are present ones, or totals since the start (_total). The
// programs' parts of the store come last: there may be more programs than fit into a reply.
std::vector<NamedNumber> NumbersForStat(const NodeSnapshot& node);

// Numbers for a view of the whole cluster. `node` needs only the number of its devices.
std::vector<node::NodeNumber> NumbersForOthers(const NodeSnapshot& node);

}  // namespace tokamak::daemon
