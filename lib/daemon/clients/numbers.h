// The numbers of a node, by name: what `tok stat` shows and a metrics page will.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "lib/client/protocol/messages.h"
#include "lib/node/calls/node_numbers.h"
#include "lib/node/node.h"
#include "lib/transport/endpoint.h"

namespace tokamak::daemon {

// Names have their unit last. Values are of now, or totals since the start (those end in _total).
void AddNodeNumbers(const node::Node& node, std::vector<client::NumberEntry>& numbers);

// What a node says of itself to others: of the same, what a view of the whole cluster shows.
// `engines`: what all endpoints have counted.
void AddNumbersForOthers(const node::Node& node, size_t rails, absl::Span<const transport::EndpointCounters> engines,
                         std::vector<node::NodeNumber>& numbers);

// What the endpoint of one engine has counted; names begin with "engine0_".
void AddEngineNumbers(size_t engine, size_t rails, const transport::EndpointCounters& counters,
                      std::vector<client::NumberEntry>& numbers);

}  // namespace tokamak::daemon
