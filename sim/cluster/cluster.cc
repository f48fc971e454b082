#include "sim/cluster/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::sim {

Cluster::Cluster(const ClusterOptions& o)
    : options(o),
      own_network_(o.network({o.seed, o.link, o.most_hosts, /*rails=*/1}, trace)),
      network(*own_network_),
      time(network.time()) {}

Cluster::~Cluster() = default;

void Cluster::Wrong(const std::string& what) const {
  CHECK(options.on_wrong != nullptr) << what << " (seed " << options.seed << ")";
  options.on_wrong(what);
}

std::string Cluster::IpOf(uint32_t i) { return absl::StrCat("10.0.", i / 250, ".", i % 250 + 1); }

Host& Cluster::Add(const HostOptions& host_options) {
  host_options_.push_back(host_options);
  incarnations_.push_back(1);
  hosts_.push_back(std::make_unique<Host>(*this, static_cast<uint32_t>(hosts_.size()), host_options, 1, ""));
  return *hosts_.back();
}

void Cluster::Crash(size_t i) {
  // The wire first: engines that end in order say goodbye.
  const verbs::Address address = hosts_[i]->address;
  network.Partition({address});
  hosts_[i].reset();
  network.Heal();
}

void Cluster::Restart(size_t i, const std::string& ip) {
  hosts_[i] = std::make_unique<Host>(*this, static_cast<uint32_t>(i), host_options_[i], ++incarnations_[i], ip);
}

bool Cluster::RunUntil(const std::function<bool()>& done, base::Duration limit) {
  return time.RunUntil(done, time.Now() + limit);
}

void Cluster::Settle() {
  RunFor(base::Microseconds(1));  // the node learns of fresh seals
  const bool settled = RunUntil([this] {
    return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
      return host == nullptr || (host->node().membership().joined() && host->node().membership().behind() == 0);
    });
  });
  if (!settled) Wrong("the directory does not get up to date");
}

void Cluster::Await(const std::shared_ptr<Got>& got, base::Duration limit) {
  if (!RunUntil([&] { return got->done; }, limit)) Wrong("a get was not answered");
}

std::vector<absl::Status> Cluster::GetAll(Host& host, const std::vector<std::string>& names, node::GetOptions get) {
  if (get.timeout == base::Duration()) get.timeout = base::Seconds(60);
  const auto got = host.StartGet(names, get);
  Await(got);
  host.Release(*got);
  std::vector<absl::Status> statuses;
  for (const node::GetResult& result : got->results) statuses.push_back(result.status);
  return statuses;
}

absl::Status Cluster::Get(Host& host, const std::string& name, node::GetOptions get) {
  const auto statuses = GetAll(host, {name}, get);
  return statuses.empty() ? absl::InternalError("no answer") : statuses.front();
}

absl::StatusOr<uint32_t> Cluster::Delete(Host& host, const std::string& name) {
  absl::StatusOr<uint32_t> result = absl::InternalError("no answer");
  bool done = false;
  const base::Pending handle =
      host.node().Delete(base::ObjectId::FromName(name), [&](const absl::StatusOr<uint32_t>& deleted) {
        done = true;
        result = deleted;
      });
  if (done) Wrong("a delete was answered inside the call");
  if (!RunUntil([&] { return done; })) Wrong("a delete was not answered");
  return result;
}

void Cluster::ExpectClean() {
  const auto quiet = [this] {
    return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
      return host == nullptr || (host->node().pulls().running() == 0 && host->node().pins_of_peers() == 0);
    });
  };
  if (!RunUntil(quiet, base::Seconds(400))) Wrong("something never ends");
  for (const auto& host : hosts_) {
    if (host == nullptr) continue;
    const store::Statistics statistics = host->store().statistics();
    const absl::Status consistent = host->store().CheckConsistency();
    if (!consistent.ok()) Wrong(absl::StrCat(host->name, ": ", consistent.ToString()));
    const auto expect_none = [&](const char* what, int64_t value) {
      if (value != 0) Wrong(absl::StrCat(host->name, ": ", value, " ", what, " at the end"));
    };
    expect_none("pins", static_cast<int64_t>(statistics.pins));
    expect_none("unsealed objects", static_cast<int64_t>(statistics.unsealed_objects));
    expect_none("lingering objects", static_cast<int64_t>(statistics.lingering_objects));
    expect_none("waiting", static_cast<int64_t>(statistics.waiting));
    expect_none("lost objects", statistics.lost());
  }
}

}  // namespace tokamak::sim
