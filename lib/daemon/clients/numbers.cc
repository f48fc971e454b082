#include "lib/daemon/clients/numbers.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/daemon/metrics/node_metrics.h"
#include "lib/transport/limits.h"

namespace tokamak::daemon {

namespace {

constexpr const char* kForOthers[] = {
    "clients",
    "draining",
    "store_capacity_bytes",
    "store_used_bytes",
    "store_kept_bytes",
    "store_sealed_objects",
    "store_pinned_objects",
    "store_pins",
    "pulls_running",
    "pulled_bytes_total",
    "pins_of_peers",
    "directory_away",
    "fenced",
};

void AddPrograms(const std::vector<store::OwnerUsage>& programs, std::vector<NamedNumber>& numbers) {
  for (const store::OwnerUsage& usage : programs) {
    if (usage.label.empty()) continue;
    numbers.push_back({absl::StrCat("store_unsealed_bytes{", usage.label, "}"), usage.unsealed_bytes});
    const uint64_t quarantined = usage.quarantined_bytes;
    if (quarantined != 0) numbers.push_back({absl::StrCat("store_quarantined_bytes{", usage.label, "}"), quarantined});
    numbers.push_back({absl::StrCat("store_pinned_bytes{", usage.label, "}"), usage.pinned_bytes});
  }
}

}  // namespace

std::vector<NamedNumber> NumbersForStat(const NodeSnapshot& node) {
  std::vector<NamedNumber> numbers;
  for (MetricReading& reading : ReadMetrics(node)) numbers.push_back({std::move(reading.stat), reading.value.whole});
  AddPrograms(node.programs, numbers);
  return numbers;
}

std::vector<node::NodeNumber> NumbersForOthers(const NodeSnapshot& node) {
  std::vector<node::NodeNumber> numbers;
  numbers.push_back({"uptime_milliseconds", static_cast<uint64_t>(node.uptime.milliseconds())});
  for (const char* name : kForOthers) numbers.push_back({name, ValueOf(name, node).whole});
  uint64_t served = 0;
  std::array<uint64_t, transport::kMaxRails> by_rail{};
  for (const transport::EndpointCounters& engine : node.engines) {
    for (const base::Counter& bytes : engine.bytes_served) served += bytes.value();
    for (size_t rail = 0; rail < by_rail.size(); ++rail) by_rail[rail] += engine.rail_bytes[rail].value();
  }
  numbers.push_back({"served_bytes_total", served});
  for (size_t rail = 0; rail < node.rails.size(); ++rail) {
    numbers.push_back({absl::StrCat("rail", rail, "_bytes_total"), by_rail[rail]});
  }
  return numbers;
}

}  // namespace tokamak::daemon
