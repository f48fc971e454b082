#include "lib/daemon/watch/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/version.h"

namespace tokamak::daemon {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr std::array<const char*, node::kVias> kViaNames = {"local", "brought", "eager", "read", "write"};
constexpr std::array<const char*, node::GetLatency::kSizes> kSizeNames = {"4KiB", "64KiB", "1MiB", "16MiB", "larger"};
constexpr std::array<const char*, 4> kProtocolNames = {"auto", "eager", "read", "write"};

// One family after the other, each with its series.
class Families final {
 public:
  void Begin(MetricType type, const char* name, const char* help) {
    all_.emplace_back();
    all_.back().name = absl::StrCat("tokamak_", name);
    all_.back().help = help;
    all_.back().type = type;
  }
  void Add(double value, Labels labels = {}) {
    ClientMetric& metric = all_.back().metric.emplace_back();
    metric.label = std::move(labels);
    (all_.back().type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  }
  void Add(const node::GetLatency::Histogram& histogram, Labels labels) {
    ClientMetric& metric = all_.back().metric.emplace_back();
    metric.label = std::move(labels);
    uint64_t count = 0;
    for (size_t i = 0; i < histogram.counts.size(); ++i) {
      count += histogram.counts[i];
      if (i == node::GetLatency::kTimeBounds.size()) break;  // the last has no bound
      // Divided, not multiplied: 0.0001 is the nearest number then, and printed so.
      const double bound = static_cast<double>(node::GetLatency::kTimeBounds[i].picoseconds()) / 1e12;
      metric.histogram.bucket.push_back({count, bound});
    }
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = histogram.seconds;
  }

  void Gauge(const char* name, const char* help, double value) {
    Begin(MetricType::Gauge, name, help);
    Add(value);
  }
  void Counter(const char* name, const char* help, uint64_t value) {
    Begin(MetricType::Counter, name, help);
    Add(static_cast<double>(value));
  }

  std::string Text() const { return prometheus::TextSerializer().Serialize(all_); }

 private:
  std::vector<MetricFamily> all_;
};

void AddNode(const NodeSnapshot& node, Families& families) {
  families.Begin(MetricType::Gauge, "build_info", "1; the version of this tokd is a label.");
  families.Add(1, {{"version", base::kVersion}});
  families.Begin(MetricType::Gauge, "node_info", "1; the node's name and devices are labels.");
  families.Add(1, {{"node", node.node}, {"device", node.device}});
  families.Gauge("uptime_seconds", "Since this tokd began.", node.uptime.seconds());
  families.Gauge("ready", "Whether /readyz says yes.", node.WhyNotReady().empty() ? 1 : 0);
  families.Gauge("draining", "Whether the node was told to end, and waits for its peers.", node.draining ? 1 : 0);
  families.Counter("loop_waits_total", "How often the control loop asked the kernel for events.", node.loop_waits);
}

void AddStore(const store::Statistics& store, Families& families) {
  const auto gauge = [&](const char* name, const char* help, uint64_t value) {
    families.Gauge(name, help, static_cast<double>(value));
  };
  gauge("store_capacity_bytes", "Memory of the store.", store.capacity_bytes);
  gauge("store_used_bytes", "Of the capacity: taken, rounding included.", store.used_bytes);
  gauge("store_evictable_bytes", "Of the used: what eviction may take.", store.evictable_bytes);
  gauge("store_largest_free_bytes", "The largest object that fits without eviction.", store.largest_free_bytes);
  gauge("store_sealed_objects", "Objects that are visible.", store.sealed_objects);
  gauge("store_sealed_bytes", "Their data and metadata.", store.sealed_bytes);
  gauge("store_kept_bytes", "Of the sealed: created here, and so kept.", store.kept_bytes);
  gauge("store_unsealed_objects", "Objects that are being written.", store.unsealed_objects);
  gauge("store_unsealed_bytes", "Their data and metadata.", store.unsealed_bytes);
  gauge("store_lingering_objects", "Objects that are deleted or aborted, and still pinned.", store.lingering_objects);
  gauge("store_lingering_bytes", "Their data and metadata.", store.lingering_bytes);
  gauge("store_quarantined_bytes", "Memory that programs without a connection may still write to.",
        store.quarantined_bytes);
  gauge("store_name_bytes", "Beside the capacity: what the names of objects take.", store.name_bytes);
  gauge("store_pinned_objects", "Objects with at least one pin.", store.pinned_objects);
  gauge("store_pins", "Pins of programs, pulls and peers.", store.pins);
  gauge("store_waiting_gets", "Gets and waits that have not ended.", store.waiting);
  gauge("store_waiting_creates", "Creates that wait for room.", store.waiting_creates);
  families.Counter("store_created_total", "Objects created, pulled ones included.", store.created);
  families.Counter("store_sealed_total", "Objects sealed.", store.sealed);
  families.Counter("store_aborted_total", "Objects given up before their seal.", store.aborted);
  families.Counter("store_deleted_total", "Objects deleted.", store.deleted);
  families.Begin(MetricType::Counter, "store_evicted_objects_total", "Objects evicted, by origin.");
  families.Add(static_cast<double>(store.evicted_pulled.objects), {{"origin", "pulled"}});
  families.Add(static_cast<double>(store.evicted_created_here.objects), {{"origin", "created_here"}});
  families.Begin(MetricType::Counter, "store_evicted_bytes_total", "Their data and metadata.");
  families.Add(static_cast<double>(store.evicted_pulled.bytes), {{"origin", "pulled"}});
  families.Add(static_cast<double>(store.evicted_created_here.bytes), {{"origin", "created_here"}});
  families.Counter("store_creates_refused_total", "Creates refused for want of room.", store.creates_refused);
  families.Gauge("store_lost_objects", "Objects gone without abort, delete or eviction: always 0.",
                 static_cast<double>(store.lost()));
}

void AddGets(const NodeSnapshot& node, Families& families) {
  families.Begin(MetricType::Histogram, "get_duration_seconds",
                 "Gets of programs, for each object found: from the request to the answer.");
  for (size_t via = 0; via < node::kVias; ++via) {
    for (size_t size = 0; size < node::GetLatency::kSizes; ++size) {
      families.Add(node.latency.Of(static_cast<node::Via>(via), size),
                   {{"protocol", kViaNames[via]}, {"size", kSizeNames[size]}});
    }
  }
  const node::PullCounters& pulls = node.pulls;
  families.Gauge("pulls_running", "Objects on their way here.", static_cast<double>(node.pulls_running));
  families.Begin(MetricType::Counter, "pulled_objects_total", "Objects pulled, by what moved them.");
  for (size_t protocol = 1; protocol < kProtocolNames.size(); ++protocol) {
    families.Add(static_cast<double>(pulls.pulled_by[protocol]), {{"protocol", kProtocolNames[protocol]}});
  }
  families.Counter("pulled_bytes_total", "Their data and metadata.", pulls.pulled_bytes);
  families.Counter("pull_attempts_failed_total", "Transfers of pulls that failed.", pulls.failed_attempts);
  families.Counter("pull_next_holder_total", "Further holders tried after a failure.", pulls.next_holder);
  families.Counter("pull_stale_holders_total", "Holders that did not have what the directory said.",
                   pulls.stale_holders);
  families.Counter("pull_waited_for_room_total", "Times a pull found no room in the store.", pulls.waited_for_room);
  families.Counter("pull_queued_total", "Times all holders were busy with other pulls of ours.", pulls.queued);
  families.Counter("pull_from_known_place_total", "Pulls that did not wait for the directory.", pulls.from_cache);
  families.Counter("pull_brought_total", "Objects that came with an answer.", pulls.brought);
  families.Counter("pull_vouched_for_total", "Copies that their holder vouched for.", pulls.vouched_for);
  families.Counter("pull_ended_by_delete_total", "Pulls whose object was deleted meanwhile.", pulls.deleted);
  families.Counter("pull_cut_and_resumable_total", "Transfers that were cut when something had arrived.",
                   pulls.resumed);
  families.Gauge("pins_of_peers", "Objects that peers are taking now.", static_cast<double>(node.pins_of_peers));
  families.Counter("pins_of_peers_total", "Objects pinned for peers.", node.pins_of_peers_total);
  families.Counter("brought_to_peers_total", "Objects sent with an answer.", node.brought_to_peers_total);
}

void AddDirectory(const NodeSnapshot& node, Families& families) {
  families.Begin(MetricType::Gauge, "directory_up", "Whether the directory answered last; its kind is a label.");
  families.Add(node.joined && !node.directory_away ? 1 : 0, {{"kind", node.directory_kind}});
  families.Gauge("fenced", "Whether the node refuses gets, having been without the directory for too long.",
                 node.fenced ? 1 : 0);
  families.Gauge("directory_updates_behind", "Announcements and withdrawals that the directory has not confirmed.",
                 static_cast<double>(node.directory_updates_behind));
  const node::MembershipCounters& membership = node.membership;
  families.Counter("directory_renewals_total", "Renewals of the lease.", membership.renewals);
  families.Counter("directory_failed_renewals_total", "Renewals without an answer.", membership.failed_renewals);
  families.Counter("directory_announced_total", "Objects announced.", membership.announced);
  families.Counter("directory_withdrawn_total", "Objects withdrawn.", membership.withdrawn);
  families.Counter("directory_re_announcements_total", "Times that everything was announced again.",
                   membership.re_announcements);
  families.Counter("directory_entries_repaired_total", "Entries that the directory had lost.", membership.repaired);
  families.Counter("objects_refused_total", "Contents dropped since their id was taken.", membership.refused);
  families.Counter("objects_dropped_total", "Contents dropped since they were deleted elsewhere.", membership.dropped);
}

void AddClients(const NodeSnapshot& node, Families& families) {
  families.Gauge("clients", "Programs that are connected.", static_cast<double>(node.clients));
  families.Gauge("client_memory_bytes", "What programs have tokd hold: answers, messages in part, requests that wait.",
                 static_cast<double>(node.client_memory));
  families.Gauge("departed_programs", "Programs without a connection that may still write to memory.",
                 static_cast<double>(node.departed_programs));
  const ClientCounters& counters = node.client_counters;
  families.Counter("clients_accepted_total", "Connections of programs.", counters.accepted);
  families.Counter("clients_refused_total",
                   "Connections refused, since there were too many, or too many of that program or user.",
                   counters.refused);
  families.Counter("clients_protocol_errors_total", "Connections ended for garbage.", counters.protocol_errors);
  families.Counter("clients_stalled_total",
                   "Connections ended since the program took no answers, or completed no messages.", counters.stalled);
  families.Counter("clients_silent_total", "Connections ended since the program said no hello.", counters.silent);
}

void AddEngines(const NodeSnapshot& node, Families& families) {
  using Counters = transport::EndpointCounters;
  const auto engine = [](size_t i) { return ClientMetric::Label{"engine", absl::StrCat(i)}; };
  struct Plain {
    const char* name;
    const char* help;
    base::Counter Counters::*counter;
  };
  static constexpr Plain kPlain[] = {
      {"downgrades_total", "Transfers that the owner sent eagerly though another protocol was asked for.",
       &Counters::downgrades},
      {"credit_stalls_total", "Messages that waited for the peer's slots.", &Counters::credit_stalls},
      {"windows_grown_total", "Windows of receives that grew.", &Counters::windows_grown},
      {"connections_opened_total", "Connections to and from peers.", &Counters::connections_opened},
      {"connections_lost_total", "Of these, ended by an error.", &Counters::connections_lost},
      {"requesters_gone_total", "Peers that gave up while they were answered.", &Counters::requesters_gone},
      {"protocol_errors_total", "Connections ended for protocol violations of peers.", &Counters::protocol_errors},
      {"bulk_connected_total", "Times a connection got queue pairs for bulk.", &Counters::bulk_connected},
      {"bulk_rested_total", "Times it gave them back.", &Counters::bulk_rested},
      {"rails_joined_total", "Times a rail beside the primary one joined a connection.", &Counters::rails_joined},
      {"rails_lost_total", "Times one dropped out.", &Counters::rails_lost},
      {"windows_bound_total", "Memory windows bound for peers' writes.", &Counters::windows_bound},
      {"regions_registered_total", "Memory regions registered by transfers.", &Counters::regions_registered},
      {"adaptive_pulls_total", "Pulls whose protocol the adaptive policy chose.", &Counters::adaptive_pulls},
      {"adaptive_explored_total", "Of these, to explore.", &Counters::adaptive_explored},
      {"late_messages_total", "Messages of transfers that were over.", &Counters::late_messages},
  };
  struct ByResult {
    const char* name;
    const char* help;
    base::Counter Counters::*ok;
    base::Counter Counters::*failed;
  };
  static constexpr ByResult kByResult[] = {
      {"pulls_total", "Transfers from peers.", &Counters::pulls_ok, &Counters::pulls_failed},
      {"serves_total", "Transfers to peers.", &Counters::serves_ok, &Counters::serves_failed},
  };
  struct ByProtocol {
    const char* name;
    const char* help;
    base::Counter (Counters::*counters)[4];
  };
  static constexpr ByProtocol kByProtocol[] = {
      {"pulled_bytes_total", "Bytes that came, by protocol.", &Counters::bytes_pulled},
      {"served_bytes_total", "Bytes that left, by protocol.", &Counters::bytes_served},
  };
  for (const ByResult& one : kByResult) {
    families.Begin(MetricType::Counter, absl::StrCat("engine_", one.name).c_str(), one.help);
    for (size_t i = 0; i < node.engines.size(); ++i) {
      families.Add(static_cast<double>((node.engines[i].*one.ok).value()), {engine(i), {"result", "ok"}});
      families.Add(static_cast<double>((node.engines[i].*one.failed).value()), {engine(i), {"result", "failed"}});
    }
  }
  for (const ByProtocol& one : kByProtocol) {
    families.Begin(MetricType::Counter, absl::StrCat("engine_", one.name).c_str(), one.help);
    for (size_t i = 0; i < node.engines.size(); ++i) {
      for (size_t protocol = 1; protocol < kProtocolNames.size(); ++protocol) {
        families.Add(static_cast<double>((node.engines[i].*one.counters)[protocol].value()),
                     {engine(i), {"protocol", kProtocolNames[protocol]}});
      }
    }
  }
  for (const Plain& one : kPlain) {
    families.Begin(MetricType::Counter, absl::StrCat("engine_", one.name).c_str(), one.help);
    for (size_t i = 0; i < node.engines.size(); ++i) {
      families.Add(static_cast<double>((node.engines[i].*one.counter).value()), {engine(i)});
    }
  }
  families.Begin(MetricType::Counter, "engine_rail_bytes_total", "Bytes that an engine read and wrote by each rail.");
  for (size_t i = 0; i < node.engines.size(); ++i) {
    for (size_t rail = 0; rail < node.rails.size(); ++rail) {
      families.Add(static_cast<double>(node.engines[i].rail_bytes[rail].value()),
                   {engine(i), {"rail", absl::StrCat(rail)}});
    }
  }
}

// The counters have the device's own names: the software NIC's, or what the kernel shows of an RDMA
// device.
void AddRails(const NodeSnapshot& node, Families& families) {
  families.Begin(MetricType::Counter, "device_events_total", "What a rail's device counts; its name is a label.");
  for (size_t rail = 0; rail < node.rails.size(); ++rail) {
    for (const client::NumberEntry& number : node.rails[rail]) {
      families.Add(static_cast<double>(number.value), {{"rail", absl::StrCat(rail)}, {"counter", number.name}});
    }
  }
}

}  // namespace

std::string MetricsText(const NodeSnapshot& snapshot) {
  Families families;
  AddNode(snapshot, families);
  AddStore(snapshot.store, families);
  AddGets(snapshot, families);
  AddDirectory(snapshot, families);
  AddClients(snapshot, families);
  AddEngines(snapshot, families);
  AddRails(snapshot, families);
  return families.Text();
}

}  // namespace tokamak::daemon
