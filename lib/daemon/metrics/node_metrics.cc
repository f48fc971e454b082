#include "lib/daemon/metrics/node_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/version.h"
#include "lib/transport/object_access.h"

namespace tokamak::daemon {

namespace {

using node::MembershipCounters;
using node::PullCounters;
using store::EvictionCount;
using store::Statistics;
using transport::EndpointCounters;
using transport::Protocol;

constexpr MetricType kGauge = MetricType::kGauge;
constexpr MetricType kCounter = MetricType::kCounter;
constexpr bool kOnlyStat = true;

constexpr MetricValue Whole(uint64_t value) { return {value, static_cast<double>(value)}; }

// Returns the member at the end of a path.
template <auto... kPath>
MetricValue Of(const NodeSnapshot& node) {
  return Whole(static_cast<uint64_t>((node.*....*kPath)));
}
template <auto... kPath>
MetricValue OfStore(const NodeSnapshot& node) {
  return Of<&NodeSnapshot::store, kPath...>(node);
}
template <auto kMember>
MetricValue OfPulls(const NodeSnapshot& node) {
  return Of<&NodeSnapshot::pulls, kMember>(node);
}
template <Protocol kProtocol>
MetricValue PulledBy(const NodeSnapshot& node) {
  return Whole(node.pulls.pulled_by[static_cast<size_t>(kProtocol)]);
}
template <auto kMember>
MetricValue OfMembership(const NodeSnapshot& node) {
  return Of<&NodeSnapshot::membership, kMember>(node);
}
template <auto kMember>
MetricValue OfClients(const NodeSnapshot& node) {
  return Of<&NodeSnapshot::client_counters, kMember>(node);
}
template <auto kMember>
MetricValue OfEngine(const EndpointCounters& counters) {
  return Whole((counters.*kMember).value());
}
template <auto kMember, Protocol kProtocol>
MetricValue OfEngineBy(const EndpointCounters& counters) {
  return Whole((counters.*kMember)[static_cast<size_t>(kProtocol)].value());
}

MetricValue Uptime(const NodeSnapshot& node) {
  return {static_cast<uint64_t>(node.uptime.seconds()), node.uptime.seconds()};
}
MetricValue Lost(const NodeSnapshot& node) {
  return {static_cast<uint64_t>(node.store.lost()), static_cast<double>(node.store.lost())};
}

constexpr MetricLabel kPulled = {"origin", "pulled"};
constexpr MetricLabel kCreatedHere = {"origin", "created_here"};
constexpr MetricLabel kEager = {"protocol", "eager"};
constexpr MetricLabel kRead = {"protocol", "read"};
constexpr MetricLabel kWrite = {"protocol", "write"};
constexpr MetricLabel kOk = {"result", "ok"};
constexpr MetricLabel kFailed = {"result", "failed"};

constexpr NodeMetric kNodeMetrics[] = {
    // The node.
    {"build_info",
     "1; the version of this tokd is a label.",
     kGauge,
     [](const NodeSnapshot&) { return Whole(1); },
     {"version", nullptr, [](const NodeSnapshot&) { return std::string(base::kVersion); }}},
    {"uptime_seconds", "Since this tokd began.", kGauge, Uptime},
    {"ready", "Whether /readyz says yes.", kGauge,
     [](const NodeSnapshot& node) { return Whole(node.WhyNotReady().empty() ? 1 : 0); }},
    {"draining", "Whether the node was told to end, and waits for its peers.", kGauge, Of<&NodeSnapshot::draining>},
    {"loop_waits_total", "How often the control loop asked the kernel for events.", kCounter,
     Of<&NodeSnapshot::loop_waits>},

    // The store.
    {"store_page_bytes", "Size of the pages that the store's memory is of.", kGauge,
     Of<&NodeSnapshot::store_page_bytes>},
    {"store_capacity_bytes", "Memory of the store.", kGauge, OfStore<&Statistics::capacity_bytes>},
    {"store_used_bytes", "Of the capacity: taken, rounding included.", kGauge, OfStore<&Statistics::used_bytes>},
    {"store_evictable_bytes", "Of the used: what eviction may take.", kGauge, OfStore<&Statistics::evictable_bytes>},
    {"store_largest_free_bytes", "The largest object that fits without eviction.", kGauge,
     OfStore<&Statistics::largest_free_bytes>},
    {"store_sealed_objects", "Objects that are visible.", kGauge, OfStore<&Statistics::sealed_objects>},
    {"store_sealed_bytes", "Their data and metadata.", kGauge, OfStore<&Statistics::sealed_bytes>},
    {"store_kept_bytes", "Of the sealed: created here, and so kept.", kGauge, OfStore<&Statistics::kept_bytes>},
    {"store_unsealed_objects", "Objects that are being written.", kGauge, OfStore<&Statistics::unsealed_objects>},
    {"store_unsealed_bytes", "Their data and metadata.", kGauge, OfStore<&Statistics::unsealed_bytes>},
    {"store_lingering_objects", "Objects that are deleted or aborted, and still pinned.", kGauge,
     OfStore<&Statistics::lingering_objects>},
    {"store_lingering_bytes", "Their data and metadata.", kGauge, OfStore<&Statistics::lingering_bytes>},
    {"store_quarantined_bytes", "Memory that programs without a connection may still write to.", kGauge,
     OfStore<&Statistics::quarantined_bytes>},
    {"store_name_bytes", "Beside the capacity: what the names of objects take.", kGauge,
     OfStore<&Statistics::name_bytes>},
    {"store_pinned_objects", "Objects with at least one pin.", kGauge, OfStore<&Statistics::pinned_objects>},
    {"store_pins", "Pins of programs, pulls and peers.", kGauge, OfStore<&Statistics::pins>},
    {"store_waiting_gets", "Gets and waits that have not ended.", kGauge, OfStore<&Statistics::waiting>},
    {"store_waiting_creates", "Creates that wait for room.", kGauge, OfStore<&Statistics::waiting_creates>},
    {"store_created_total", "Objects created, pulled ones included.", kCounter, OfStore<&Statistics::created>},
    {"store_sealed_total", "Objects sealed.", kCounter, OfStore<&Statistics::sealed>},
    {"store_aborted_total", "Objects given up before their seal.", kCounter, OfStore<&Statistics::aborted>},
    {"store_deleted_total", "Objects deleted.", kCounter, OfStore<&Statistics::deleted>},
    {"store_evicted_objects_total", "Objects evicted, by origin.", kCounter,
     OfStore<&Statistics::evicted_pulled, &EvictionCount::objects>, kPulled, "store_evicted_pulled_objects_total"},
    {"store_evicted_objects_total", "Objects evicted, by origin.", kCounter,
     OfStore<&Statistics::evicted_created_here, &EvictionCount::objects>, kCreatedHere,
     "store_evicted_created_here_objects_total"},
    {"store_evicted_bytes_total", "Their data and metadata.", kCounter,
     OfStore<&Statistics::evicted_pulled, &EvictionCount::bytes>, kPulled, "store_evicted_pulled_bytes_total"},
    {"store_evicted_bytes_total", "Their data and metadata.", kCounter,
     OfStore<&Statistics::evicted_created_here, &EvictionCount::bytes>, kCreatedHere,
     "store_evicted_created_here_bytes_total"},
    {"store_creates_refused_total", "Creates refused for want of room.", kCounter,
     OfStore<&Statistics::creates_refused>},
    // A gauge: counts less objects present, which may fall again.
    {"store_lost_objects", "Objects gone without abort, delete or eviction: always 0.", kGauge, Lost},
    {"store_lost_objects_total",
     "The former name of store_lost_objects in tok stat.",
     kCounter,
     Lost,
     {},
     nullptr,
     kOnlyStat},

    // Gets and pulls.
    {"pulls_running", "Objects on their way here.", kGauge, Of<&NodeSnapshot::pulls_running>},
    {"pulled_objects_total",
     "Objects pulled, by what moved them.",
     kCounter,
     OfPulls<&PullCounters::pulled>,
     {},
     nullptr,
     kOnlyStat},
    {"pulled_objects_total", "Objects pulled, by what moved them.", kCounter, PulledBy<Protocol::kEager>, kEager,
     "pulled_by_eager_total"},
    {"pulled_objects_total", "Objects pulled, by what moved them.", kCounter, PulledBy<Protocol::kRead>, kRead,
     "pulled_by_read_total"},
    {"pulled_objects_total", "Objects pulled, by what moved them.", kCounter, PulledBy<Protocol::kWrite>, kWrite,
     "pulled_by_write_total"},
    {"pulled_bytes_total", "Their data and metadata.", kCounter, OfPulls<&PullCounters::pulled_bytes>},
    {"pull_attempts_failed_total", "Transfers of pulls that failed.", kCounter,
     OfPulls<&PullCounters::failed_attempts>},
    {"pull_next_holder_total", "Further holders tried after a failure.", kCounter, OfPulls<&PullCounters::next_holder>},
    {"pull_stale_holders_total", "Holders that did not have what the directory said.", kCounter,
     OfPulls<&PullCounters::stale_holders>},
    {"pull_waited_for_room_total", "Times a pull found no room in the store.", kCounter,
     OfPulls<&PullCounters::waited_for_room>},
    {"pull_queued_total", "Times all holders were busy with other pulls of ours.", kCounter,
     OfPulls<&PullCounters::queued>},
    {"pull_from_known_place_total", "Pulls that did not wait for the directory.", kCounter,
     OfPulls<&PullCounters::from_cache>},
    {"pull_brought_total", "Objects that came with an answer.", kCounter, OfPulls<&PullCounters::brought>},
    {"pull_vouched_for_total", "Copies that their holder vouched for.", kCounter, OfPulls<&PullCounters::vouched_for>},
    {"pull_ended_by_delete_total", "Pulls whose object was deleted meanwhile.", kCounter,
     OfPulls<&PullCounters::deleted>},
    {"pull_cut_and_resumable_total", "Transfers that were cut when something had arrived.", kCounter,
     OfPulls<&PullCounters::resumed>},
    {"pins_of_peers", "Objects that peers are taking now.", kGauge, Of<&NodeSnapshot::pins_of_peers>},
    {"pins_of_peers_total", "Objects pinned for peers.", kCounter, Of<&NodeSnapshot::pins_of_peers_total>},
    {"brought_to_peers_total", "Objects sent with an answer.", kCounter, Of<&NodeSnapshot::brought_to_peers_total>},
    {"location_cache_objects", "Objects whose place is known without the directory.", kGauge,
     Of<&NodeSnapshot::location_cache_objects>},

    // The directory.
    {"directory_up",
     "Whether the directory answered last; its kind is a label.",
     kGauge,
     [](const NodeSnapshot& node) { return Whole(node.joined && !node.directory_away ? 1 : 0); },
     {"kind", nullptr, [](const NodeSnapshot& node) { return node.directory_kind; }}},
    {"directory_away",
     "Whether the directory is out of reach; directory_up says it at /metrics.",
     kGauge,
     Of<&NodeSnapshot::directory_away>,
     {},
     nullptr,
     kOnlyStat},
    {"fenced", "Whether the node refuses gets, having been without the directory for too long.", kGauge,
     Of<&NodeSnapshot::fenced>},
    {"directory_updates_behind", "Announcements and withdrawals that the directory has not confirmed.", kGauge,
     Of<&NodeSnapshot::directory_updates_behind>},
    {"directory_renewals_total", "Renewals of the lease.", kCounter, OfMembership<&MembershipCounters::renewals>},
    {"directory_failed_renewals_total", "Renewals without an answer.", kCounter,
     OfMembership<&MembershipCounters::failed_renewals>},
    {"directory_announced_total", "Objects announced.", kCounter, OfMembership<&MembershipCounters::announced>},
    {"directory_withdrawn_total", "Objects withdrawn.", kCounter, OfMembership<&MembershipCounters::withdrawn>},
    {"directory_re_announcements_total", "Times that everything was announced again.", kCounter,
     OfMembership<&MembershipCounters::re_announcements>},
    {"directory_entries_repaired_total", "Entries that the directory had lost.", kCounter,
     OfMembership<&MembershipCounters::repaired>},
    {"objects_refused_total", "Contents dropped since their id was taken.", kCounter,
     OfMembership<&MembershipCounters::refused>},
    {"objects_dropped_total", "Contents dropped since they were deleted elsewhere.", kCounter,
     OfMembership<&MembershipCounters::dropped>},

    // Programs.
    {"clients", "Programs that are connected.", kGauge, Of<&NodeSnapshot::clients>},
    {"client_memory_bytes", "What programs have tokd hold: answers, messages in part, requests that wait.", kGauge,
     Of<&NodeSnapshot::client_memory>},
    {"departed_programs", "Programs without a connection that may still write to memory.", kGauge,
     Of<&NodeSnapshot::departed_programs>},
    {"clients_accepted_total", "Connections of programs.", kCounter, OfClients<&ClientCounters::accepted>},
    {"clients_refused_total", "Connections refused, since there were too many, or too many of that program or user.",
     kCounter, OfClients<&ClientCounters::refused>},
    {"clients_protocol_errors_total", "Connections ended for garbage.", kCounter,
     OfClients<&ClientCounters::protocol_errors>},
    {"clients_stalled_total", "Connections ended since the program took no answers, or completed no messages.",
     kCounter, OfClients<&ClientCounters::stalled>},
    {"clients_silent_total", "Connections ended since the program said no hello.", kCounter,
     OfClients<&ClientCounters::silent>},
};

constexpr EngineMetric kEngineMetrics[] = {
    {"pulls_total", "Transfers from peers.", kCounter, OfEngine<&EndpointCounters::pulls_ok>, kOk, "pulls_ok_total"},
    {"pulls_total", "Transfers from peers.", kCounter, OfEngine<&EndpointCounters::pulls_failed>, kFailed,
     "pulls_failed_total"},
    {"serves_total", "Transfers to peers.", kCounter, OfEngine<&EndpointCounters::serves_ok>, kOk, "serves_ok_total"},
    {"serves_total", "Transfers to peers.", kCounter, OfEngine<&EndpointCounters::serves_failed>, kFailed,
     "serves_failed_total"},
    {"pulled_bytes_total", "Bytes that came, by protocol.", kCounter,
     OfEngineBy<&EndpointCounters::bytes_pulled, Protocol::kEager>, kEager, "pulled_eager_bytes_total"},
    {"pulled_bytes_total", "Bytes that came, by protocol.", kCounter,
     OfEngineBy<&EndpointCounters::bytes_pulled, Protocol::kRead>, kRead, "pulled_read_bytes_total"},
    {"pulled_bytes_total", "Bytes that came, by protocol.", kCounter,
     OfEngineBy<&EndpointCounters::bytes_pulled, Protocol::kWrite>, kWrite, "pulled_write_bytes_total"},
    {"served_bytes_total", "Bytes that left, by protocol.", kCounter,
     OfEngineBy<&EndpointCounters::bytes_served, Protocol::kEager>, kEager, "served_eager_bytes_total"},
    {"served_bytes_total", "Bytes that left, by protocol.", kCounter,
     OfEngineBy<&EndpointCounters::bytes_served, Protocol::kRead>, kRead, "served_read_bytes_total"},
    {"served_bytes_total", "Bytes that left, by protocol.", kCounter,
     OfEngineBy<&EndpointCounters::bytes_served, Protocol::kWrite>, kWrite, "served_write_bytes_total"},
    {"downgrades_total", "Transfers that the owner sent eagerly though another protocol was asked for.", kCounter,
     OfEngine<&EndpointCounters::downgrades>},
    {"credit_stalls_total", "Messages that waited for the peer's slots.", kCounter,
     OfEngine<&EndpointCounters::credit_stalls>},
    {"windows_grown_total", "Windows of receives that grew.", kCounter, OfEngine<&EndpointCounters::windows_grown>},
    {"connections_opened_total", "Connections to and from peers.", kCounter,
     OfEngine<&EndpointCounters::connections_opened>},
    {"connections_lost_total", "Of these, ended by an error.", kCounter, OfEngine<&EndpointCounters::connections_lost>},
    {"requesters_gone_total", "Peers that gave up while they were answered.", kCounter,
     OfEngine<&EndpointCounters::requesters_gone>},
    {"protocol_errors_total", "Connections ended for protocol violations of peers.", kCounter,
     OfEngine<&EndpointCounters::protocol_errors>},
    {"peers_proven_total", "Connections whose peer proved that it belongs to the cluster.", kCounter,
     OfEngine<&EndpointCounters::peers_proven>},
    {"peers_refused_total", "Connections whose peer did not.", kCounter, OfEngine<&EndpointCounters::peers_refused>},
    {"newcomers_dropped_total", "Connections that gave way before their peer had proven itself.", kCounter,
     OfEngine<&EndpointCounters::newcomers_dropped>},
    {"bulk_connected_total", "Times a connection got queue pairs for bulk.", kCounter,
     OfEngine<&EndpointCounters::bulk_connected>},
    {"bulk_rested_total", "Times it gave them back.", kCounter, OfEngine<&EndpointCounters::bulk_rested>},
    {"rails_joined_total", "Times a rail beside the primary one joined a connection.", kCounter,
     OfEngine<&EndpointCounters::rails_joined>},
    {"rails_lost_total", "Times one dropped out.", kCounter, OfEngine<&EndpointCounters::rails_lost>},
    {"windows_bound_total", "Memory windows bound for peers' writes.", kCounter,
     OfEngine<&EndpointCounters::windows_bound>},
    {"regions_registered_total", "Memory regions registered by transfers.", kCounter,
     OfEngine<&EndpointCounters::regions_registered>},
    {"adaptive_pulls_total", "Pulls whose protocol the adaptive policy chose.", kCounter,
     OfEngine<&EndpointCounters::adaptive_pulls>},
    {"adaptive_explored_total", "Of these, to explore.", kCounter, OfEngine<&EndpointCounters::adaptive_explored>},
    // Prometheus has seconds.
    {"adaptive_nanoseconds_total",
     "Time of the pulls that the adaptive policy chose for, and that worked.",
     kCounter,
     OfEngine<&EndpointCounters::adaptive_nanoseconds>,
     {},
     nullptr,
     kOnlyStat},
    {"adaptive_explored_nanoseconds_total",
     "Time of those that explored.",
     kCounter,
     OfEngine<&EndpointCounters::adaptive_explored_nanoseconds>,
     {},
     nullptr,
     kOnlyStat},
    {"adaptive_links_changed_total", "Times that the adaptive policy saw a link change.", kCounter,
     OfEngine<&EndpointCounters::adaptive_links_changed>},
    {"late_messages_total", "Messages of transfers that were over.", kCounter,
     OfEngine<&EndpointCounters::late_messages>},
};

constexpr bool IsTotal(absl::string_view name) {
  constexpr absl::string_view kTotal = "_total";
  return name.size() > kTotal.size() && name.substr(name.size() - kTotal.size()) == kTotal;
}

template <typename From, size_t kRows>
constexpr bool NamesSayTheType(const Metric<From> (&rows)[kRows]) {
  for (const Metric<From>& row : rows) {
    if (IsTotal(row.name) != (row.type == MetricType::kCounter)) return false;
  }
  return true;
}
static_assert(NamesSayTheType(kNodeMetrics) && NamesSayTheType(kEngineMetrics));

template <typename From>
MetricReading Read(const Metric<From>& row, const From& from, const NodeSnapshot& node) {
  const bool named = row.stat != nullptr;
  MetricReading reading = {row.name,      row.help,       row.type, {}, named ? row.stat : row.name,
                           row.only_stat, row.value(from)};
  if (row.label.key == nullptr) return reading;
  const std::string value = row.label.value_of == nullptr ? row.label.value : row.label.value_of(node);
  reading.labels.emplace_back(row.label.key, value);
  if (!named) absl::StrAppend(&reading.stat, "{", value, "}");
  return reading;
}

// A label at /metrics, a prefix in tok stat.
MetricReading OfEngineNumber(size_t engine, MetricReading reading) {
  reading.name = absl::StrCat("engine_", reading.name);
  reading.labels.emplace(reading.labels.begin(), "engine", absl::StrCat(engine));
  reading.stat = absl::StrCat("engine", engine, "_", reading.stat);
  return reading;
}

MetricReading OfRail(size_t rail, uint64_t bytes) {
  return {"rail_bytes_total",
          "Bytes that an engine read and wrote by each rail.",
          kCounter,
          {{"rail", absl::StrCat(rail)}},
          absl::StrCat("rail", rail, "_bytes_total"),
          false,
          Whole(bytes)};
}

// Names are the software NIC's, or the kernel's for an RDMA device.
MetricReading OfDevice(size_t rail, const NamedNumber& number) {
  return {"device_events_total",
          "What a rail's device counts; its name is a label.",
          kCounter,
          {{"rail", absl::StrCat(rail)}, {"counter", number.name}},
          rail == 0 ? number.name : absl::StrCat("rail", rail, "_", number.name),
          false,
          Whole(number.value)};
}

}  // namespace

absl::Span<const NodeMetric> NodeMetrics() { return kNodeMetrics; }

MetricValue ValueOf(absl::string_view name, const NodeSnapshot& node) {
  for (const NodeMetric& row : kNodeMetrics) {
    if (row.name == name && row.label.key == nullptr) return row.value(node);
  }
  CHECK(false) << "no number of a node is named " << name;
}

std::vector<MetricReading> ReadMetrics(const NodeSnapshot& node) {
  std::vector<MetricReading> readings;
  for (const NodeMetric& row : kNodeMetrics) readings.push_back(Read(row, node, node));
  for (size_t rail = 0; rail < node.rails.size(); ++rail) {
    for (const NamedNumber& number : node.rails[rail]) readings.push_back(OfDevice(rail, number));
  }
  for (size_t i = 0; i < node.engines.size(); ++i) {
    const EndpointCounters& engine = node.engines[i];
    for (const EngineMetric& row : kEngineMetrics) readings.push_back(OfEngineNumber(i, Read(row, engine, node)));
    for (size_t rail = 0; rail < node.rails.size(); ++rail) {
      readings.push_back(OfEngineNumber(i, OfRail(rail, engine.rail_bytes[rail].value())));
    }
  }
  return readings;
}

}  // namespace tokamak::daemon
