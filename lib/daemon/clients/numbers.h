// The numbers of a node by name, as the table has them (node_metrics.h): what `tok stat` shows, and
// what a node says of itself to others.
#pragma once

#include <vector>

#include "lib/daemon/metrics/named_number.h"
#include "lib/daemon/metrics/node_snapshot.h"
#include "lib/node/calls/node_numbers.h"

namespace tokamak::daemon {

// Names have their unit last. Values are of now, or totals since the start (those end in _total).
// What each program has of the store comes last: there may be more programs than fit into a reply.
std::vector<NamedNumber> NumbersForStat(const NodeSnapshot& node);

// What a view of the whole cluster shows of a node. Of the devices in `node`, how many they are is
// enough.
std::vector<node::NodeNumber> NumbersForOthers(const NodeSnapshot& node);

}  // namespace tokamak::daemon
