// Metrics are a node's numbers as Prometheus reads them. docs/metrics.md says what each means, and
// what its labels are; a test compares the two.
//
// Names begin with "tokamak_" and end with their unit, a base unit (seconds, bytes); those that
// only grow end with "_total". No label comes from what a program or a peer says of itself, so
// their number is bounded.
#pragma once

#include <string>

#include "lib/daemon/metrics/node_snapshot.h"

namespace tokamak::daemon {

// The text format, version 0.0.4.
std::string MetricsText(const NodeSnapshot& snapshot);
constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace tokamak::daemon
