// The table of a node's numbers: a row each, with name, help and source, for all who show it.
//
//  /metrics (metrics.h)      tokamak_NAME, tokamak_NAME{label="value"}
//  tok stat (numbers.h)      NAME; a number with a label has a name of its own, in `stat`
//  the cluster (numbers.h)   some
//  the page (status_site.h)  those of the store, and some more
//  docs/metrics.md           a row for each name, which a test compares, both ways
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
  kCounter,  // since the start; ..._total
};

// Whole for people, exact for Prometheus.
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
  const char* name;  // without "tokamak_" or "tokamak_engine_"
  const char* help;
  MetricType type;
  MetricValue (*value)(const From&);
  MetricLabel label = {};
  const char* stat = nullptr;  // in tok stat; null: `name`, the label in braces
  bool only_stat = false;      // /metrics has another form
};

using NodeMetric = Metric<NodeSnapshot>;
// Per engine: label "engine" at /metrics, prefix "engine0_" in tok stat.
using EngineMetric = Metric<transport::EndpointCounters>;

// Rows of one name are adjacent, with the same help.
absl::Span<const NodeMetric> NodeMetrics();

// Requires a row of this name without a label.
MetricValue ValueOf(absl::string_view name, const NodeSnapshot& node);

struct MetricReading {
  std::string name;  // without "tokamak_"
  const char* help;
  MetricType type;
  std::vector<std::pair<std::string, std::string>> labels;
  std::string stat;  // in tok stat
  bool only_stat;
  MetricValue value;
};

// Returns all rows with values, and counts of each rail's device and of each engine by rail.
std::vector<MetricReading> ReadMetrics(const NodeSnapshot& node);

}  // namespace tokamak::daemon
