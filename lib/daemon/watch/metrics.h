// Metrics are a node's numbers as Prometheus reads them (docs/metrics.md, which a test compares).
//
// Names begin with "tokamak_" and end with a base unit, totals with "_total". No label comes from a
// program or a peer: their number is bounded.
#pragma once

#include <string>

#include "lib/daemon/metrics/node_snapshot.h"

namespace tokamak::daemon {

// Returns the text format, version 0.0.4.
std::string MetricsText(const NodeSnapshot& snapshot);
constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace tokamak::daemon
