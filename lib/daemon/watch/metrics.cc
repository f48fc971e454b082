#include "lib/daemon/watch/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/daemon/metrics/node_metrics.h"

namespace tokamak::daemon {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using PrometheusType = prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr std::array<const char*, node::kVias> kViaNames = {"local", "brought", "eager", "read", "write"};
constexpr std::array<const char*, node::GetLatency::kSizes> kSizeNames = {"4KiB", "64KiB", "1MiB", "16MiB", "larger"};

MetricFamily Family(PrometheusType type, absl::string_view name, const char* help) {
  return {absl::StrCat("tokamak_", name), help, type, {}};
}

Labels ToLabels(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Labels labels;
  for (const auto& [key, value] : pairs) labels.push_back({key, value});
  return labels;
}

ClientMetric Series(PrometheusType type, double value, Labels labels) {
  ClientMetric series;
  series.label = std::move(labels);
  (type == PrometheusType::Counter ? series.counter.value : series.gauge.value) = value;
  return series;
}

ClientMetric Series(const node::GetLatency::Histogram& histogram, Labels labels) {
  ClientMetric series;
  series.label = std::move(labels);
  uint64_t count = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    count += histogram.counts[i];
    if (i == node::GetLatency::kTimeBounds.size()) break;  // the last has no bound
    // Division gives the nearest number: 0.0001 prints so.
    const double bound = static_cast<double>(node::GetLatency::kTimeBounds[i].picoseconds()) / 1e12;
    series.histogram.bucket.push_back({count, bound});
  }
  series.histogram.sample_count = count;
  series.histogram.sample_sum = histogram.seconds;
  return series;
}

// Labels, not in the table.
MetricFamily NodeInfoFamily(const NodeSnapshot& node) {
  MetricFamily family = Family(PrometheusType::Gauge, "node_info", "1; the node's name and devices are labels.");
  family.metric.push_back(Series(family.type, 1, {{"node", node.node}, {"device", node.device}}));
  return family;
}

// Not in the table: `tok stat` shows no histograms.
MetricFamily GetDurationFamily(const node::GetLatency& latency) {
  MetricFamily family = Family(PrometheusType::Histogram, "get_duration_seconds",
                               "Gets of programs, for each object found: from the request to the answer.");
  for (size_t via = 0; via < node::kVias; ++via) {
    for (size_t size = 0; size < node::GetLatency::kSizes; ++size) {
      family.metric.push_back(Series(latency.Of(static_cast<node::Via>(via), size),
                                     {{"protocol", kViaNames[via]}, {"size", kSizeNames[size]}}));
    }
  }
  return family;
}

PrometheusType TypeOf(const MetricReading& reading) {
  return reading.type == MetricType::kCounter ? PrometheusType::Counter : PrometheusType::Gauge;
}

}  // namespace

std::string MetricsText(const NodeSnapshot& snapshot) {
  std::vector<MetricFamily> families = {NodeInfoFamily(snapshot), GetDurationFamily(snapshot.latency)};
  std::map<std::string, size_t> places;  // in `families`, shared by engines
  for (const MetricReading& reading : ReadMetrics(snapshot)) {
    if (reading.only_stat) continue;
    const PrometheusType type = TypeOf(reading);
    const auto [place, is_new] = places.emplace(reading.name, families.size());
    if (is_new) families.push_back(Family(type, reading.name, reading.help));
    families[place->second].metric.push_back(Series(type, reading.value.exact, ToLabels(reading.labels)));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace tokamak::daemon
