// The table of a node's numbers: each has one row, with name, help and source, for all who show it.
//
//  /metrics (metrics.h)      tokamak_NAME, tokamak_NAME{label="value"}
//  tok stat (numbers.h)      NAME; a number with a label has a name of its own, in `stat`
//  the cluster (numbers.h)   some of these, by their names
//  the page (status_site.h)  those of the store, and some more by their names
//  docs/metrics.md           a row for each name, which a test compares, both ways
//
// A new number is a member of NodeSnapshot, or of the counters in it, a row of the table and a row
// of the document.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/daemon/metrics/node_snapshot.h"
#include "lib/transport/endpoint.h"

namespace tokamak::daemon {

enum class MetricType : uint8_t {
  kGauge,    // present value
  kCounter,  // total since the start; the name ends with _total
};

// The same value as a whole number, for people, and exactly, for Prometheus.
struct MetricValue {
  uint64_t whole = 0;
  double exact = 0;
};

struct MetricLabel {
  const char* key = nullptr;  // null: no label
  const char* value = nullptr;
  std::string (*value_of)(const NodeSnapshot&) = nullptr;  // null: `value` is constant
};

template <typename From>
struct Metric {
  const char* name;  // without "tokamak_" or, for an engine's, "tokamak_engine_"
  const char* help;
  MetricType type;
  MetricValue (*value)(const From&);
  MetricLabel label = {};
  const char* stat = nullptr;  // in tok stat; null: `name` with the label in braces
  bool only_stat = false;      // true if /metrics has another form of it
};

using NodeMetric = Metric<NodeSnapshot>;
// Counts of each engine: /metrics has the label "engine"; names in tok stat begin with "engine0_".
using EngineMetric = Metric<transport::EndpointCounters>;

// Rows of one name are adjacent and have the same help: they differ in the label's value.
absl::Span<const NodeMetric> NodeMetrics();

// Returns the value of the row with this name and without a label, which must exist.
MetricValue ValueOf(absl::string_view name, const NodeSnapshot& node);

// One number of one node, with all that is shown of it.
struct MetricReading {
  std::string name;  // without "tokamak_"
  const char* help;
  MetricType type;
  std::vector<std::pair<std::string, std::string>> labels;
  std::string stat;  // name in tok stat
  bool only_stat;
  MetricValue value;
};

// Returns all rows with values, and the counts of each rail's device and of each engine by rail.
std::vector<MetricReading> ReadMetrics(const NodeSnapshot& node);

}  // namespace tokamak::daemon
