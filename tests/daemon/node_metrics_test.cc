// The table of a node's numbers: what /metrics, `tok stat` and the cluster's views show of it, and
// whether the documents, the dashboard and the alerts name what it has.
#include "lib/daemon/metrics/node_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "lib/daemon/clients/numbers.h"
#include "lib/daemon/watch/metrics.h"
#include "lib/transport/object_access.h"

namespace tokamak::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using transport::Protocol;

constexpr size_t kRails = 2;

// Every number of the snapshot differs from all others.
class NodeMetricsTest : public testing::Test {
 protected:
  NodeMetricsTest() {
    node_.node = "node1";
    node_.device = "soft";
    node_.directory_kind = "tokd";
    node_.uptime = base::Milliseconds(90'500);
    FillEach(node_.store);
    FillEach(node_.pulls);
    FillEach(node_.membership);
    FillEach(node_.client_counters);
    for (uint64_t* number :
         {&node_.store_page_bytes, &node_.pulls_running, &node_.pins_of_peers, &node_.pins_of_peers_total,
          &node_.brought_to_peers_total, &node_.location_cache_objects, &node_.directory_updates_behind, &node_.clients,
          &node_.departed_programs, &node_.client_memory, &node_.loop_waits}) {
      *number = Next();
    }
    node_.rails.resize(kRails);
    for (size_t rail = 0; rail < kRails; ++rail) node_.rails[rail] = {{"nic_packets_sent_total", Next()}};
    for (int engine = 0; engine < 2; ++engine) {
      transport::EndpointCounters& counters = node_.engines.emplace_back();
      static_assert(sizeof counters % sizeof(base::Counter) == 0);
      auto* each = reinterpret_cast<base::Counter*>(&counters);
      for (size_t i = 0; i < sizeof counters / sizeof(base::Counter); ++i) each[i] += Next();
    }
  }

  std::map<std::string, uint64_t> Stat() const {
    std::map<std::string, uint64_t> numbers;
    for (const NamedNumber& number : NumbersForStat(node_)) {
      EXPECT_TRUE(numbers.emplace(number.name, number.value).second) << number.name << " is there twice";
    }
    return numbers;
  }

  NodeSnapshot node_;

 private:
  uint64_t Next() { return last_ += 1000; }

  // `numbers` has no members but of 64 bits.
  template <typename Numbers>
  void FillEach(Numbers& numbers) {
    static_assert(std::is_trivially_copyable_v<Numbers> && sizeof(Numbers) % sizeof(uint64_t) == 0);
    std::vector<uint64_t> each(sizeof(Numbers) / sizeof(uint64_t));
    for (uint64_t& one : each) one = Next();
    std::memcpy(static_cast<void*>(&numbers), each.data(), sizeof(Numbers));
  }

  uint64_t last_ = 0;
};

std::string ReadFile(const std::string& name) {
  std::ifstream file(name);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string SeriesName(const MetricReading& reading) {
  std::vector<std::string> labels;
  for (const auto& [key, value] : reading.labels) labels.push_back(absl::StrCat(key, "=\"", value, "\""));
  const std::string inside = labels.empty() ? "" : absl::StrCat("{", absl::StrJoin(labels, ","), "}");
  return absl::StrCat("tokamak_", reading.name, inside);
}

// Type and labels of each metric, as a scrape has them: "counter engine,rail".
std::map<std::string, std::string> Shapes(const std::string& scrape) {
  std::map<std::string, std::string> types;
  std::map<std::string, std::set<std::string>> labels;
  static const std::regex kLabel("([a-z_]+)=\"");
  for (const absl::string_view each : absl::StrSplit(scrape, '\n')) {
    const std::string line(each);
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (absl::StartsWith(line, "# TYPE ")) types[words[2]] = words[3];
    const size_t brace = line.find('{');
    if (absl::StartsWith(line, "#") || brace == std::string::npos) continue;
    const std::string name =
        std::regex_replace(line.substr(0, brace), std::regex("_seconds_(bucket|sum|count)$"), "_seconds");
    for (std::sregex_iterator label(line.begin(), line.end(), kLabel), end; label != end; ++label) {
      if ((*label)[1] != "le") labels[name].insert((*label)[1]);
    }
  }
  std::map<std::string, std::string> shapes;
  for (const auto& [name, type] : types) shapes[name] = absl::StrCat(type, " ", absl::StrJoin(labels[name], ","));
  return shapes;
}

// The same, as docs/metrics.md says.
std::map<std::string, std::string> DocumentedShapes() {
  static const std::regex kRow(R"(\| `(tokamak_[a-z0-9_]+)` \| (gauge|counter|histogram) \|([^|]*)\|)");
  static const std::regex kName("`([a-z_]+)`");
  std::map<std::string, std::string> shapes;
  const std::string text = ReadFile("docs/metrics.md");
  for (std::sregex_iterator row(text.begin(), text.end(), kRow), end; row != end; ++row) {
    const std::string names = (*row)[3];
    std::set<std::string> labels;
    for (std::sregex_iterator label(names.begin(), names.end(), kName); label != end; ++label) {
      labels.insert((*label)[1]);
    }
    shapes[(*row)[1]] = absl::StrCat((*row)[2].str(), " ", absl::StrJoin(labels, ","));
  }
  return shapes;
}

TEST_F(NodeMetricsTest, EachRowIsAtMetricsWithTheSnapshotsValue) {
  const std::vector<std::string> lines = absl::StrSplit(MetricsText(node_), '\n');
  const std::set<std::string> scrape(lines.begin(), lines.end());
  for (const MetricReading& reading : ReadMetrics(node_)) {
    if (reading.only_stat) continue;
    const std::string value = reading.name == "uptime_seconds" ? "90.5" : absl::StrCat(reading.value.exact);
    EXPECT_EQ(scrape.count(absl::StrCat(SeriesName(reading), " ", value)), 1u) << SeriesName(reading) << " " << value;
    EXPECT_EQ(scrape.count(absl::StrCat("# HELP tokamak_", reading.name, " ", reading.help)), 1u) << reading.name;
  }
}

TEST_F(NodeMetricsTest, EachRowIsInStatWithTheSnapshotsValue) {
  const std::map<std::string, uint64_t> stat = Stat();
  for (const MetricReading& reading : ReadMetrics(node_)) {
    ASSERT_EQ(stat.count(reading.stat), 1u) << reading.stat;
    EXPECT_EQ(stat.at(reading.stat), reading.value.whole) << reading.stat;
  }
}

// A row that was copied and not finished would read its neighbour's number.
TEST_F(NodeMetricsTest, NoTwoRowsReadTheSameNumber) {
  std::map<uint64_t, std::string> seen;
  for (const MetricReading& reading : ReadMetrics(node_)) {
    const bool is_flag = reading.value.whole <= 1;
    if (is_flag || reading.stat == "store_lost_objects_total") continue;
    const auto [other, is_new] = seen.emplace(reading.value.whole, reading.stat);
    EXPECT_TRUE(is_new) << reading.stat << " reads what " << other->second << " reads";
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST_F(NodeMetricsTest, ProtocolsAreThoseOfTheEnumeration) {
  const std::map<std::string, uint64_t> stat = Stat();
  const transport::EndpointCounters& engine = node_.engines[1];
  for (const Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    const std::string name = transport::ToString(protocol);
    const auto at = static_cast<size_t>(protocol);
    EXPECT_EQ(stat.at(absl::StrCat("pulled_by_", name, "_total")), node_.pulls.pulled_by[at]);
    EXPECT_EQ(stat.at(absl::StrCat("engine1_pulled_", name, "_bytes_total")), engine.bytes_pulled[at]);
    EXPECT_EQ(stat.at(absl::StrCat("engine1_served_", name, "_bytes_total")), engine.bytes_served[at]);
    EXPECT_THAT(MetricsText(node_), HasSubstr(absl::StrCat("\ntokamak_pulled_objects_total{protocol=\"", name, "\"} ",
                                                           node_.pulls.pulled_by[at], "\n")));
  }
}

TEST_F(NodeMetricsTest, EnginesAndRailsAreToldApart) {
  const std::map<std::string, uint64_t> stat = Stat();
  for (size_t engine = 0; engine < 2; ++engine) {
    EXPECT_EQ(stat.at(absl::StrCat("engine", engine, "_pulls_failed_total")), node_.engines[engine].pulls_failed);
    for (size_t rail = 0; rail < kRails; ++rail) {
      const uint64_t bytes = node_.engines[engine].rail_bytes[rail];
      EXPECT_EQ(stat.at(absl::StrCat("engine", engine, "_rail", rail, "_bytes_total")), bytes);
    }
  }
  EXPECT_EQ(stat.at("nic_packets_sent_total"), node_.rails[0][0].value);
  EXPECT_EQ(stat.at("rail1_nic_packets_sent_total"), node_.rails[1][0].value);
}

TEST_F(NodeMetricsTest, LostObjectsAreAGaugeAndKeepTheirFormerNameInStat) {
  node_.store = store::Statistics();
  node_.store.created = 3;
  node_.store.sealed_objects = 1;
  EXPECT_EQ(Stat().at("store_lost_objects"), 2u);
  EXPECT_EQ(Stat().at("store_lost_objects_total"), 2u);
  EXPECT_THAT(MetricsText(node_), HasSubstr("# TYPE tokamak_store_lost_objects gauge\ntokamak_store_lost_objects 2\n"));
  EXPECT_THAT(MetricsText(node_), testing::Not(HasSubstr("store_lost_objects_total")));
  node_.store.sealed_objects = 4;
  EXPECT_THAT(MetricsText(node_), HasSubstr("\ntokamak_store_lost_objects -1\n"));
}

TEST_F(NodeMetricsTest, ProgramsComeAfterAllOtherNumbersOfStat) {
  store::OwnerUsage usage;
  usage.label = "pid 1";
  usage.unsealed_bytes = 5;
  usage.pinned_bytes = 6;
  node_.programs = {usage};
  const std::vector<NamedNumber> numbers = NumbersForStat(node_);
  ASSERT_GE(numbers.size(), 2u);
  EXPECT_EQ(numbers[numbers.size() - 2].name, "store_unsealed_bytes{pid 1}");
  EXPECT_EQ(numbers[numbers.size() - 2].value, 5u);
  EXPECT_EQ(numbers.back().name, "store_pinned_bytes{pid 1}");
  EXPECT_EQ(numbers.back().value, 6u);
}

TEST_F(NodeMetricsTest, NumbersForOtherNodesHaveAFixedOrder) {
  node_.draining = true;
  std::vector<std::string> names;
  std::map<std::string, uint64_t> values;
  for (const node::NodeNumber& number : NumbersForOthers(node_)) {
    names.push_back(number.name);
    values[number.name] = number.value;
  }
  EXPECT_THAT(names, ElementsAre("uptime_milliseconds", "clients", "draining", "store_capacity_bytes",
                                 "store_used_bytes", "store_kept_bytes", "store_sealed_objects", "store_pinned_objects",
                                 "store_pins", "pulls_running", "pulled_bytes_total", "pins_of_peers", "directory_away",
                                 "fenced", "served_bytes_total", "rail0_bytes_total", "rail1_bytes_total"));
  EXPECT_EQ(values["uptime_milliseconds"], 90'500u);
  EXPECT_EQ(values["draining"], 1u);
  EXPECT_EQ(values["store_pins"], node_.store.pins);
  EXPECT_EQ(values["pulled_bytes_total"], node_.pulls.pulled_bytes);
  EXPECT_EQ(values["rail1_bytes_total"], node_.engines[0].rail_bytes[1] + node_.engines[1].rail_bytes[1]);
}

TEST_F(NodeMetricsTest, TheDocumentHasARowForEachMetricAndNoOther) {
  EXPECT_EQ(DocumentedShapes(), Shapes(MetricsText(node_)));
}

TEST_F(NodeMetricsTest, NumbersOfStatAloneAreDocumentedToo) {
  const std::string text = ReadFile("docs/metrics.md");
  for (const MetricReading& reading : ReadMetrics(node_)) {
    if (!reading.only_stat) continue;
    const std::string name = std::regex_replace(reading.stat, std::regex("^engine[0-9]+_"), "engineN_");
    EXPECT_THAT(text, HasSubstr(absl::StrCat("| `", name, "` |")));
  }
}

TEST_F(NodeMetricsTest, TheDashboardAndTheAlertsNameMetricsThatExist) {
  static const std::regex kMetric("tokamak_[a-z0-9_]+");
  const std::map<std::string, std::string> known = Shapes(MetricsText(node_));
  for (const char* name : {"share/grafana/tokamak.json", "share/prometheus/tokamak.rules.yml"}) {
    const std::string text = ReadFile(name);
    size_t found = 0;
    for (std::sregex_iterator metric(text.begin(), text.end(), kMetric), end; metric != end; ++metric) {
      ++found;
      const std::string whole =
          std::regex_replace(metric->str(), std::regex("_seconds_(bucket|sum|count)$"), "_seconds");
      EXPECT_EQ(known.count(whole), 1u) << metric->str() << " in " << name;
    }
    EXPECT_GT(found, 10u) << name;
  }
}

// Scripts read them.
TEST_F(NodeMetricsTest, StatKeepsItsFormerNames) {
  const std::map<std::string, uint64_t> stat = Stat();
  static const char* const kNames[] = {
      "store_capacity_bytes",
      "store_used_bytes",
      "store_evictable_bytes",
      "store_sealed_objects",
      "store_sealed_bytes",
      "store_kept_bytes",
      "store_unsealed_objects",
      "store_quarantined_bytes",
      "store_name_bytes",
      "store_pinned_objects",
      "store_pins",
      "store_waiting_creates",
      "store_created_total",
      "store_sealed_total",
      "store_deleted_total",
      "store_evicted_pulled_objects_total",
      "store_evicted_created_here_objects_total",
      "store_creates_refused_total",
      "store_lost_objects_total",
      "pulls_running",
      "pulled_objects_total",
      "pulled_bytes_total",
      "pulled_by_eager_total",
      "pulled_by_read_total",
      "pulled_by_write_total",
      "pull_attempts_failed_total",
      "pull_next_holder_total",
      "pull_stale_holders_total",
      "pull_waited_for_room_total",
      "pins_of_peers",
      "pins_of_peers_total",
      "brought_to_peers_total",
      "directory_updates_behind",
      "directory_failed_renewals_total",
      "directory_re_announcements_total",
      "location_cache_objects",
      "pull_from_known_place_total",
      "pull_brought_total",
      "pull_vouched_for_total",
      "pull_ended_by_delete_total",
      "pull_cut_and_resumable_total",
      "objects_refused_total",
      "objects_dropped_total",
      "directory_entries_repaired_total",
      "directory_away",
      "fenced",
      "uptime_seconds",
      "clients",
      "clients_accepted_total",
      "clients_refused_total",
      "clients_protocol_errors_total",
      "clients_stalled_total",
      "clients_silent_total",
      "client_memory_bytes",
      "loop_waits_total",
      "store_page_bytes",
      "engine0_pulls_ok_total",
      "engine0_pulls_failed_total",
      "engine0_serves_ok_total",
      "engine0_serves_failed_total",
      "engine0_downgrades_total",
      "engine0_credit_stalls_total",
      "engine0_windows_grown_total",
      "engine0_connections_opened_total",
      "engine0_connections_lost_total",
      "engine0_requesters_gone_total",
      "engine0_protocol_errors_total",
      "engine0_peers_proven_total",
      "engine0_peers_refused_total",
      "engine0_newcomers_dropped_total",
      "engine0_bulk_connected_total",
      "engine0_bulk_rested_total",
      "engine0_rails_joined_total",
      "engine0_rails_lost_total",
      "engine0_windows_bound_total",
      "engine0_regions_registered_total",
      "engine0_adaptive_pulls_total",
      "engine0_adaptive_explored_total",
      "engine0_adaptive_nanoseconds_total",
      "engine0_adaptive_explored_nanoseconds_total",
      "engine0_adaptive_links_changed_total",
      "engine0_pulled_eager_bytes_total",
      "engine0_served_eager_bytes_total",
      "engine0_pulled_read_bytes_total",
      "engine0_served_read_bytes_total",
      "engine0_pulled_write_bytes_total",
      "engine0_served_write_bytes_total",
      "engine0_rail0_bytes_total",
      "engine0_rail1_bytes_total",
      "nic_packets_sent_total",
      "rail1_nic_packets_sent_total",
  };
  for (const char* name : kNames) EXPECT_EQ(stat.count(name), 1u) << name;
}

}  // namespace
}  // namespace tokamak::daemon
