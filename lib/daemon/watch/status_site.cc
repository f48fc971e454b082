#include "lib/daemon/watch/status_site.h"

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/version.h"
#include "lib/daemon/metrics/node_metrics.h"
#include "lib/daemon/page/files.h"
#include "lib/daemon/watch/metrics.h"
#include "lib/daemon/watch/page_address.h"
#include "lib/transport/object_access.h"
#include "nlohmann/json.hpp"

namespace tokamak::daemon {

namespace {

using nlohmann::json;

HttpAnswer NotFound() { return {404, "text/plain; charset=utf-8", "there is /, /metrics, /healthz and /readyz\n"}; }

HttpAnswer Unavailable(absl::string_view why) { return {503, "text/plain; charset=utf-8", absl::StrCat(why, "\n")}; }

HttpAnswer NoAnswer() {
  return Unavailable(absl::StrCat("the control loop did not answer within ", StatusSite::kDeadline.count(), " ms"));
}

// Programs' and peers' texts may be invalid UTF-8.
HttpAnswer Json(const json& value) {
  return {200, "application/json", value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace)};
}

HttpAnswer Readiness(const NodeSnapshot& node) {
  const std::string why = node.WhyNotReady();
  return why.empty() ? HttpAnswer{200, "text/plain; charset=utf-8", "ready\n"} : Unavailable(why);
}

// The store's rows, without "store_".
json StoreToJson(const NodeSnapshot& node) {
  constexpr absl::string_view kPrefix = "store_";
  json store = json::object();
  for (const NodeMetric& row : NodeMetrics()) {
    const absl::string_view name = row.name;
    if (row.label.key != nullptr || row.only_stat || !absl::StartsWith(name, kPrefix)) continue;
    store[std::string(name.substr(kPrefix.size()))] = row.value(node).whole;
  }
  store["evicted_total"] = node.store.evicted_pulled.objects + node.store.evicted_created_here.objects;
  return store;
}

json Sum(const NodeSnapshot& node, base::Counter (transport::EndpointCounters::*counters)[4]) {
  using transport::Protocol;
  json sums = json::object();
  for (const Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    uint64_t sum = 0;
    for (const transport::EndpointCounters& engine : node.engines) {
      sum += (engine.*counters)[static_cast<size_t>(protocol)].value();
    }
    sums[transport::ToString(protocol)] = sum;
  }
  return sums;
}

json ToJson(const node::GetLatency& latency) {
  static constexpr std::array<const char*, node::kVias> kVias = {"local", "brought", "eager", "read", "write"};
  json all = json::array();
  for (size_t via = 0; via < node::kVias; ++via) {
    for (size_t size = 0; size < node::GetLatency::kSizes; ++size) {
      const node::GetLatency::Histogram& one = latency.Of(static_cast<node::Via>(via), size);
      all.push_back(
          {{"protocol", kVias[via]},
           {"size_up_to",
            size < node::GetLatency::kSizeBounds.size() ? json(node::GetLatency::kSizeBounds[size]) : json(nullptr)},
           {"counts", one.counts},
           {"seconds", one.seconds}});
    }
  }
  return all;
}

HttpAnswer NodeJson(const NodeSnapshot& node) {
  json programs = json::array(), bounds = json::array();
  for (const store::OwnerUsage& usage : node.programs) {
    if (usage.label.empty() && !usage.ended) continue;
    programs.push_back({{"program", usage.ended ? "(programs that ended)" : usage.label},
                        {"unsealed_bytes", usage.unsealed_bytes},
                        {"quarantined_bytes", usage.quarantined_bytes},
                        {"pinned_bytes", usage.pinned_bytes},
                        {"kept_bytes", usage.kept_bytes}});
  }
  for (const base::Duration bound : node::GetLatency::kTimeBounds) bounds.push_back(bound.seconds());
  json all = {{"node", node.node},
              {"device", node.device},
              {"version", base::kVersion},
              {"directory", node.directory_kind},
              {"uptime_seconds", node.uptime.seconds()},
              {"why_not_ready", node.WhyNotReady()},
              {"failed_attempts_total", node.pulls.failed_attempts},
              {"store", StoreToJson(node)},
              {"came_bytes", Sum(node, &transport::EndpointCounters::bytes_pulled)},
              {"left_bytes", Sum(node, &transport::EndpointCounters::bytes_served)},
              {"latency_bounds_seconds", bounds},
              {"latency", ToJson(node.latency)},
              {"programs", programs}};
  for (const char* name : {"clients", "pulls_running", "pins_of_peers", "pulled_bytes_total", "pulled_objects_total"}) {
    all[name] = ValueOf(name, node).whole;
  }
  return Json(all);
}

PagePlace PlaceOf(const node::ClusterView::Entry& entry) {
  PagePlace place;
  if (entry.numbers.has_value()) place.page = entry.numbers->page;
  if (!entry.node.engines.empty()) place.engine = entry.node.engines.front();
  return place;
}

json ToJson(const node::ClusterView::View& view, const std::string& self) {
  static constexpr std::array<const char*, 3> kStates = {"alive", "suspected", "silent"};
  PagePlace own;
  for (const node::ClusterView::Entry& entry : view.nodes) {
    if (entry.node.id == self) own = PlaceOf(entry);
  }
  json nodes = json::array();
  for (const node::ClusterView::Entry& entry : view.nodes) {
    const directory::NodeInfo& node = entry.node;
    json numbers = json::object();
    if (entry.numbers.has_value()) {
      for (const node::NodeNumber& number : entry.numbers->numbers) numbers[number.name] = number.value;
    }
    const bool is_this = node.id == self;
    nodes.push_back({{"node", node.id},
                     {"address", PlaceOf(entry).engine},
                     {"device", node.device},
                     {"capacity_bytes", node.capacity},
                     {"state", kStates[static_cast<size_t>(entry.state)]},
                     {"unheard_seconds", entry.unheard_for.seconds()},
                     {"is_this", is_this},
                     {"page", is_this ? "" : LinkToPage(PlaceOf(entry), own)},
                     {"numbers", numbers}});
  }
  return {{"located", view.located}, {"nodes", nodes}};
}

json ToJson(const store::StoredObject& object, base::Time now) {
  return {{"id", object.id.ToHex()},
          {"name", std::string(object.name.text())},
          {"bytes", object.location.total_size()},
          {"uses", object.uses},
          {"pins", object.pins},
          {"age_seconds", (now - object.created_at).seconds()},
          {"origin", object.origin == store::Origin::kPulled ? "pulled" : "created here"}};
}

}  // namespace

HttpAnswer StatusSite::Get(absl::string_view path) {
  if (path == "/metrics") {
    return WithSnapshot([](const NodeSnapshot& node) { return HttpAnswer{200, kMetricsType, MetricsText(node)}; });
  }
  if (path == "/healthz")
    return WithSnapshot([](const NodeSnapshot&) { return HttpAnswer{200, "text/plain", "ok\n"}; });
  if (path == "/readyz") return WithSnapshot(Readiness);
  if (path == "/api/node") return WithSnapshot(NodeJson);
  if (path == "/api/nodes") return Nodes();
  if (path == "/api/objects") return Objects();
  if (const page::File* file = page::Find(path)) return {200, file->type, std::string(file->text)};
  return NotFound();
}

template <typename Show>
HttpAnswer StatusSite::WithSnapshot(const Show& show) {
  const std::optional<NodeSnapshot> snapshot = desk_.Ask<NodeSnapshot>(
      [this](const std::function<void(NodeSnapshot)>& answer) -> base::Pending {
        answer(questions_.snapshot());
        return nullptr;
      },
      kDeadline);
  return snapshot.has_value() ? show(*snapshot) : NoAnswer();
}

HttpAnswer StatusSite::Nodes() {
  struct Answer {
    node::ClusterView::View view;
    std::string self;
  };
  const std::optional<Answer> answer = desk_.Ask<Answer>(
      [this](std::function<void(Answer)> tell) {
        return questions_.cluster([this, tell = std::move(tell)](const node::ClusterView::View& view) {
          tell({view, questions_.snapshot().node});
        });
      },
      kDeadline);
  if (!answer.has_value()) return NoAnswer();
  return Json(ToJson(answer->view, answer->self));
}

// Requests during a look share its result.
HttpAnswer StatusSite::Objects() {
  const base::MutexLock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (!objects_.empty() && now - objects_seen_ < kObjectsAge) return {200, "application/json", objects_};
  const std::optional<HotObjects::Report> report = desk_.Ask<HotObjects::Report>(
      [this](HotObjects::Done answer) { return questions_.objects(std::move(answer)); }, kDeadline);
  if (!report.has_value()) return NoAnswer();
  json objects = json::array();
  for (const store::StoredObject& object : report->objects) objects.push_back(ToJson(object, report->now));
  HttpAnswer answer = Json({{"seen", report->seen}, {"objects", objects}});
  objects_ = answer.body;
  objects_seen_ = now;
  return answer;
}

}  // namespace tokamak::daemon
