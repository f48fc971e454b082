#include "sim/scenario/load/ideal_time.h"

#include <algorithm>
#include <deque>

#include "lib/base/check.h"

namespace tokamak::sim {
namespace {

// Wire bytes, see docs/simulation.md.
constexpr uint32_t kHeaders = 82;
constexpr uint32_t kReth = 16;
constexpr uint32_t kAeth = 4;
constexpr uint32_t kIpv6 = 20;  // beyond IPv4

constexpr uint32_t kNobody = UINT32_MAX;

}  // namespace

IdealTimes::IdealTimes(const Topology& topology, uint32_t mtu)
    : topology_(topology), mtu_(mtu), cables_(topology.nodes()) {
  for (uint32_t host = 0; host < topology.hosts.size(); ++host) {
    for (uint32_t port = 0; port < topology.hosts[host].addresses.size(); ++port) {
      interfaces_.push_back({host, port});
      ipv6_.push_back(!topology.hosts[host].addresses[port].is_ipv4());
    }
  }
  for (uint32_t i = 0; i < topology.cables.size(); ++i) {
    for (const Topology::End& end : topology.cables[i].ends) cables_[end.node].push_back(i);
  }
}

base::Duration IdealTimes::Of(const Transfer& transfer) {
  if (transfer.from != last_from_ || transfer.to != last_to_) {
    way_ = FindWay(transfer.from, transfer.to);
    last_from_ = transfer.from;
    last_to_ = transfer.to;
  }
  const bool read = transfer.verb == verbs::Opcode::kRead;
  const uint32_t headers = kHeaders + (ipv6_[transfer.from] ? kIpv6 : 0);
  std::vector<uint32_t> packets;
  for (uint32_t sent = 0; sent < transfer.bytes; sent += mtu_) {
    const uint32_t payload = std::min(mtu_, transfer.bytes - sent);
    packets.push_back((payload + 3) / 4 * 4 + headers);
  }
  if (transfer.verb == verbs::Opcode::kWrite) packets.front() += kReth;
  if (read) {
    packets.front() += kAeth;
    if (packets.size() > 1) packets.back() += kAeth;
  }
  Way back = way_;
  std::reverse(back.begin(), back.end());
  return Through(way_, packets) + Through(back, {headers + (read ? kReth : kAeth)});
}

base::Duration IdealTimes::Through(const Way& way, const std::vector<uint32_t>& packets) {
  std::vector<base::Duration> free(way.size());
  base::Duration here;
  for (uint32_t bytes : packets) {
    here = base::Duration();
    for (size_t i = 0; i < way.size(); ++i) {
      free[i] = std::max(free[i], here) + way[i]->rate.TimeOf(bytes);
      here = free[i] + way[i]->delay;
    }
  }
  return here;
}

IdealTimes::Way IdealTimes::FindWay(uint32_t from, uint32_t to) const {
  const Topology::End& source = interfaces_[from];
  const Topology::End& target = interfaces_[to];
  const auto is = [](const Topology::End& a, const Topology::End& b) { return a.node == b.node && a.port == b.port; };
  // From the target: each node's cable towards it.
  std::vector<uint32_t> next(topology_.nodes(), kNobody);
  std::vector<bool> known(topology_.nodes());
  std::deque<uint32_t> nodes = {target.node};
  known[target.node] = true;
  while (!nodes.empty()) {
    const uint32_t node = nodes.front();
    nodes.pop_front();
    for (uint32_t cable : cables_[node]) {
      const auto& ends = topology_.cables[cable].ends;
      const size_t near = ends[0].node == node ? 0 : 1;
      const Topology::End& far = ends[1 - near];
      if (topology_.is_host(node) && !is(ends[near], target)) continue;  // hosts forward nothing
      if (known[far.node] || (topology_.is_host(far.node) && !is(far, source))) continue;
      known[far.node] = true;
      next[far.node] = cable;
      if (!topology_.is_host(far.node)) nodes.push_back(far.node);
    }
  }
  Way way;
  for (uint32_t node = source.node; node != target.node;) {
    CHECK_NE(next[node], kNobody) << "no way from interface " << from << " to " << to;
    const Topology::Cable& cable = topology_.cables[next[node]];
    way.push_back(&cable.parameters);
    node = cable.ends[cable.ends[0].node == node ? 1 : 0].node;
  }
  return way;
}

}  // namespace tokamak::sim
