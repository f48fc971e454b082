#include "sim/scenario/load/store_hosts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/node/pulls/pull_table.h"

namespace tokamak::sim {
namespace {

constexpr base::Duration kFirstPause = base::Microseconds(10);  // before the first look for readiness
constexpr base::Duration kMostPause = base::Milliseconds(1);
constexpr base::Duration kMostPatience = base::Seconds(1);  // per connection; then it is made on demand

// Got by `to` to connect: the smallest object, or the smallest for bulk.
std::string HelloOf(uint32_t from, uint32_t to, bool bulk) {
  return absl::StrCat(bulk ? "bulk" : "hello", from, "-", to);
}
uint64_t SizeOfHello(bool bulk) { return bulk ? node::kShortWay + 1 : 1; }

}  // namespace

absl::StatusOr<std::unique_ptr<StoreHosts>> StoreHosts::Open(VirtualTime& time, base::EventLoop& loop,
                                                             const Scenario& scenario, const Devices& devices) {
  std::unique_ptr<StoreHosts> all(new StoreHosts(loop, scenario));
  for (uint32_t number = 0; number < scenario.topology.hosts.size(); ++number) {
    const Topology::Host& host = scenario.topology.hosts[number];
    std::vector<verbs::Device*> rails;
    for (size_t i = 0; i < host.addresses.size(); ++i) {
      rails.push_back(&devices(static_cast<uint32_t>(all->host_of_.size())));
      all->host_of_.push_back(number);
    }
    auto opened = StoreHost::Open(time, scenario, number, rails);
    if (!opened.ok()) {
      return absl::Status(opened.status().code(), absl::StrCat(host.name, ": ", opened.status().message()));
    }
    all->hosts_.push_back(*std::move(opened));
  }
  return all;
}

void StoreHosts::Prepare(base::Task ready) {
  for (const auto& host : hosts_) host->Start();
  AwaitAll(kFirstPause, [this, ready = std::move(ready)] { PutFirst(ready); });
}

void StoreHosts::AwaitAll(base::Duration pause, base::Task then) {
  look_ = loop_.RunAfter(pause, [this, pause, then = std::move(then)] {
    const bool settled =
        underway_ == 0 && std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host->settled(); });
    if (settled) return then();
    AwaitAll(std::min(pause * 2, kMostPause), then);
  });
}

// Puts objects that exist before; one without room is missing for its gets.
void StoreHosts::PutFirst(base::Task ready) {
  for (uint32_t i = 0; i < scenario_.objects.size(); ++i) {
    const StoreObject& object = scenario_.objects[i];
    if (!object.there_before) continue;
    ++underway_;
    HostAt(object.home).Put(NameOf(i), object.bytes, [this](const StoreReport& report) {
      --underway_;
      LOG_IF(ERROR, !report.status.ok()) << "an object could not be put: " << report.status;
    });
  }
  AwaitAll(kFirstPause, [this, ready = std::move(ready)] {
    if (scenario_.store.connect_before) Connect();
    AwaitAll(kFirstPause, ready);
  });
}

// Connects getters to putters, one after the other, also for bulk, by getting what nobody else has;
// each begins with another peer, so no host is asked by all at once.
void StoreHosts::Connect() {
  const auto count = static_cast<uint32_t>(hosts_.size());
  std::vector<std::set<std::pair<uint32_t, bool>>> distances(count);
  for (const Transfer& one : scenario_.transfers) {
    if (one.way != Transfer::Way::kGet || one.from == one.to) continue;
    const uint32_t from = host_of_[one.from], to = host_of_[one.to];
    for (const bool bulk : {false, true}) {
      if (bulk && (one.bytes <= node::kShortWay || scenario_.store.engines == 0)) continue;
      if (!distances[to].insert({(from + count - to) % count, bulk}).second) continue;
      ++underway_;
      hosts_[from]->Put(HelloOf(from, to, bulk), SizeOfHello(bulk), [this](const StoreReport&) { --underway_; });
    }
  }
  for (uint32_t host = 0; host < count; ++host) {
    std::vector<Peer>& peers = peers_.emplace_back();
    for (const auto& [distance, bulk] : distances[host]) peers.push_back({(host + distance) % count, bulk});
    std::reverse(peers.begin(), peers.end());
    ConnectNext(host);
  }
}

void StoreHosts::ConnectNext(uint32_t host) {
  if (peers_[host].empty()) return;
  const Peer peer = peers_[host].back();
  peers_[host].pop_back();
  ++underway_;
  const std::string hello = HelloOf(peer.host, host, peer.bulk);
  // READ: queue pairs for large objects are made, too.
  hosts_[host]->Get(hello, transport::Protocol::kRead, kMostPatience, [this, host, peer, hello](const StoreReport&) {
    --underway_;
    if (peer.bulk) {
      hosts_[host]->Drop(hello);
      hosts_[peer.host]->Drop(hello);
    }
    ConnectNext(host);
  });
}

void StoreHosts::Begin(const Transfer& transfer, StoreHost::Done done) {
  if (transfer.way == Transfer::Way::kPut) {
    return HostAt(transfer.to).Put(NameOf(transfer.object), transfer.bytes, std::move(done));
  }
  HostAt(transfer.to).Get(NameOf(transfer.object), transfer.protocol, scenario_.duration, std::move(done));
}

bool StoreHosts::payload_is_right() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host->payload_is_right(); });
}

}  // namespace tokamak::sim
