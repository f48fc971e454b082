// The numbers of a node, by name: what `tok stat` shows and a metrics page will.
#pragma once

#include <vector>

#include "lib/client/messages.h"
#include "lib/node/node.h"

namespace tokamak::daemon {

// Names have their unit last. Values are of now, or totals since the start (those end in _total).
void AddNodeNumbers(const node::Node& node, std::vector<client::NumberEntry>& numbers);

}  // namespace tokamak::daemon
