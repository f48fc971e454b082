#include "lib/daemon/clients/numbers.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/transport/limits.h"

namespace tokamak::daemon {

void AddNodeNumbers(const node::Node& node, std::vector<client::NumberEntry>& numbers) {
  const store::Statistics store = node.store().statistics();
  const node::PullCounters& pulls = node.pulls().counters();
  const node::MembershipCounters& membership = node.membership().counters();
  const auto add = [&numbers](const char* name, uint64_t value) { numbers.push_back({name, value}); };
  add("store_capacity_bytes", store.capacity_bytes);
  add("store_used_bytes", store.used_bytes);
  add("store_evictable_bytes", store.evictable_bytes);
  add("store_sealed_objects", store.sealed_objects);
  add("store_sealed_bytes", store.sealed_bytes);
  add("store_kept_bytes", store.kept_bytes);
  add("store_unsealed_objects", store.unsealed_objects);
  add("store_quarantined_bytes", store.quarantined_bytes);
  add("store_name_bytes", store.name_bytes);
  add("store_pinned_objects", store.pinned_objects);
  add("store_pins", store.pins);
  add("store_waiting_creates", store.waiting_creates);
  add("store_created_total", store.created);
  add("store_sealed_total", store.sealed);
  add("store_deleted_total", store.deleted);
  add("store_evicted_pulled_objects_total", store.evicted_pulled.objects);
  add("store_evicted_created_here_objects_total", store.evicted_created_here.objects);
  add("store_creates_refused_total", store.creates_refused);
  add("store_lost_objects_total", static_cast<uint64_t>(store.lost()));
  for (const store::OwnerUsage& usage : node.store().usage()) {
    if (usage.label.empty()) continue;
    add(absl::StrCat("store_unsealed_bytes{", usage.label, "}").c_str(), usage.unsealed_bytes);
    const uint64_t quarantined = usage.quarantined_bytes;
    if (quarantined != 0) add(absl::StrCat("store_quarantined_bytes{", usage.label, "}").c_str(), quarantined);
    add(absl::StrCat("store_pinned_bytes{", usage.label, "}").c_str(), usage.pinned_bytes);
  }
  add("pulls_running", node.pulls().running());
  add("pulled_objects_total", pulls.pulled);
  add("pulled_bytes_total", pulls.pulled_bytes);
  add("pulled_by_eager_total", pulls.pulled_by[1]);
  add("pulled_by_read_total", pulls.pulled_by[2]);
  add("pulled_by_write_total", pulls.pulled_by[3]);
  add("pull_attempts_failed_total", pulls.failed_attempts);
  add("pull_next_holder_total", pulls.next_holder);
  add("pull_stale_holders_total", pulls.stale_holders);
  add("pull_waited_for_room_total", pulls.waited_for_room);
  add("pins_of_peers", node.pins_of_peers());
  add("pins_of_peers_total", node.pins_of_peers_total());
  add("brought_to_peers_total", node.brought_to_peers_total());
  add("directory_updates_behind", node.membership().behind());
  add("directory_failed_renewals_total", membership.failed_renewals);
  add("directory_re_announcements_total", membership.re_announcements);
  add("location_cache_objects", node.places().size());
  add("pull_from_known_place_total", pulls.from_cache);
  add("pull_brought_total", pulls.brought);
  add("pull_vouched_for_total", pulls.vouched_for);
  add("pull_ended_by_delete_total", pulls.deleted);
  add("pull_cut_and_resumable_total", pulls.resumed);
  add("objects_refused_total", membership.refused);
  add("objects_dropped_total", membership.dropped);
  add("directory_entries_repaired_total", membership.repaired);
  add("directory_away", node.membership().directory_away() ? 1 : 0);
  add("fenced", node.membership().fenced() ? 1 : 0);
}

void AddNumbersForOthers(const node::Node& node, size_t rails, absl::Span<const transport::EndpointCounters> engines,
                         std::vector<node::NodeNumber>& numbers) {
  const store::Statistics store = node.store().statistics();
  const auto add = [&numbers](const std::string& name, uint64_t value) { numbers.push_back({name, value}); };
  add("store_capacity_bytes", store.capacity_bytes);
  add("store_used_bytes", store.used_bytes);
  add("store_kept_bytes", store.kept_bytes);
  add("store_sealed_objects", store.sealed_objects);
  add("store_pinned_objects", store.pinned_objects);
  add("store_pins", store.pins);
  add("pulls_running", node.pulls().running());
  add("pulled_bytes_total", node.pulls().counters().pulled_bytes);
  add("pins_of_peers", node.pins_of_peers());
  add("directory_away", node.membership().directory_away() ? 1 : 0);
  add("fenced", node.membership().fenced() ? 1 : 0);
  uint64_t served = 0;
  std::array<uint64_t, transport::kMaxRails> by_rail{};
  for (const transport::EndpointCounters& engine : engines) {
    for (const base::Counter& bytes : engine.bytes_served) served += bytes.value();
    for (size_t rail = 0; rail < by_rail.size(); ++rail) by_rail[rail] += engine.rail_bytes[rail].value();
  }
  add("served_bytes_total", served);
  for (size_t rail = 0; rail < rails; ++rail) add(absl::StrCat("rail", rail, "_bytes_total"), by_rail[rail]);
}

void AddEngineNumbers(size_t engine, size_t rails, const transport::EndpointCounters& counters,
                      std::vector<client::NumberEntry>& numbers) {
  const auto add = [&](const char* name, uint64_t value) {
    numbers.push_back({absl::StrCat("engine", engine, "_", name), value});
  };
  add("pulls_ok_total", counters.pulls_ok);
  add("pulls_failed_total", counters.pulls_failed);
  add("serves_ok_total", counters.serves_ok);
  add("serves_failed_total", counters.serves_failed);
  add("downgrades_total", counters.downgrades);
  add("credit_stalls_total", counters.credit_stalls);
  add("windows_grown_total", counters.windows_grown);
  add("connections_opened_total", counters.connections_opened);
  add("connections_lost_total", counters.connections_lost);
  add("requesters_gone_total", counters.requesters_gone);
  add("protocol_errors_total", counters.protocol_errors);
  add("bulk_connected_total", counters.bulk_connected);
  add("bulk_rested_total", counters.bulk_rested);
  add("rails_joined_total", counters.rails_joined);
  add("rails_lost_total", counters.rails_lost);
  add("windows_bound_total", counters.windows_bound);
  add("regions_registered_total", counters.regions_registered);
  add("adaptive_pulls_total", counters.adaptive_pulls);
  add("adaptive_explored_total", counters.adaptive_explored);
  add("adaptive_nanoseconds_total", counters.adaptive_nanoseconds);
  add("adaptive_explored_nanoseconds_total", counters.adaptive_explored_nanoseconds);
  add("adaptive_links_changed_total", counters.adaptive_links_changed);
  static constexpr std::array<const char*, 4> kProtocols = {"", "eager", "read", "write"};
  for (size_t protocol = 1; protocol < kProtocols.size(); ++protocol) {
    add(absl::StrCat("pulled_", kProtocols[protocol], "_bytes_total").c_str(), counters.bytes_pulled[protocol]);
    add(absl::StrCat("served_", kProtocols[protocol], "_bytes_total").c_str(), counters.bytes_served[protocol]);
  }
  for (size_t rail = 0; rail < rails; ++rail) {
    add(absl::StrCat("rail", rail, "_bytes_total").c_str(), counters.rail_bytes[rail]);
  }
}

}  // namespace tokamak::daemon
