#include "sim/fabric/topology/generators.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "sim/fabric/topology/topology_builder.h"

namespace tokamak::sim {
namespace {

std::vector<uint32_t> AddHosts(uint32_t count, uint32_t interfaces, TopologyBuilder* builder) {
  std::vector<uint32_t> hosts;
  for (uint32_t i = 0; i < count; ++i) hosts.push_back(builder->AddHost(absl::StrCat("host", i), interfaces));
  return hosts;
}

std::vector<uint32_t> AddSwitches(const char* kind, uint32_t count, const SwitchOptions& options,
                                  TopologyBuilder* builder) {
  std::vector<uint32_t> switches;
  for (uint32_t i = 0; i < count; ++i) switches.push_back(builder->AddSwitch(absl::StrCat(kind, i), options));
  return switches;
}

}  // namespace

Topology Pair(const GeneratorOptions& options) {
  TopologyBuilder builder;
  const auto hosts = AddHosts(2, 1, &builder);
  builder.Connect(hosts[0], hosts[1], options.host);
  return builder.topology();
}

Topology Star(const GeneratorOptions& options, uint32_t hosts) {
  TopologyBuilder builder;
  const auto ends = AddHosts(hosts, 1, &builder);
  const uint32_t hub = builder.AddSwitch("switch0", options.switches);
  for (uint32_t host : ends) builder.Connect(host, hub, options.host);
  return builder.topology();
}

Topology Dumbbell(const GeneratorOptions& options, uint32_t hosts_per_side) {
  TopologyBuilder builder;
  const auto hosts = AddHosts(2 * hosts_per_side, 1, &builder);
  const auto switches = AddSwitches("switch", 2, options.switches, &builder);
  for (uint32_t i = 0; i < hosts.size(); ++i) {
    builder.Connect(hosts[i], switches[i / hosts_per_side], options.host);
  }
  builder.Connect(switches[0], switches[1], options.uplink);
  return builder.topology();
}

Topology ParkingLot(const GeneratorOptions& options, uint32_t switches, uint32_t hosts_per_switch) {
  TopologyBuilder builder;
  const auto hosts = AddHosts(switches * hosts_per_switch, 1, &builder);
  const auto row = AddSwitches("switch", switches, options.switches, &builder);
  for (uint32_t i = 0; i < hosts.size(); ++i) builder.Connect(hosts[i], row[i / hosts_per_switch], options.host);
  for (uint32_t i = 1; i < switches; ++i) builder.Connect(row[i - 1], row[i], options.uplink);
  return builder.topology();
}

Topology LeafSpine(const GeneratorOptions& options, uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf) {
  TopologyBuilder builder;
  const auto hosts = AddHosts(leaves * hosts_per_leaf, 1, &builder);
  const auto leaf = AddSwitches("leaf", leaves, options.switches, &builder);
  const auto spine = AddSwitches("spine", spines, options.switches, &builder);
  for (uint32_t i = 0; i < hosts.size(); ++i) builder.Connect(hosts[i], leaf[i / hosts_per_leaf], options.host);
  for (uint32_t lower : leaf) {
    for (uint32_t upper : spine) builder.Connect(lower, upper, options.uplink);
  }
  return builder.topology();
}

Topology FatTree(const GeneratorOptions& options, uint32_t k) {
  CHECK(k >= 2 && k % 2 == 0) << "a fat tree of k = " << k;
  const uint32_t half = k / 2;
  TopologyBuilder builder;
  const auto hosts = AddHosts(k * half * half, 1, &builder);
  const auto edges = AddSwitches("edge", k * half, options.switches, &builder);
  const auto aggregations = AddSwitches("aggregation", k * half, options.switches, &builder);
  const auto cores = AddSwitches("core", half * half, options.switches, &builder);
  for (uint32_t i = 0; i < hosts.size(); ++i) builder.Connect(hosts[i], edges[i / half], options.host);
  for (uint32_t i = 0; i < edges.size(); ++i) {
    const uint32_t pod = i / half;
    for (uint32_t j = 0; j < half; ++j) builder.Connect(edges[i], aggregations[pod * half + j], options.uplink);
  }
  for (uint32_t i = 0; i < aggregations.size(); ++i) {
    const uint32_t place = i % half;
    for (uint32_t j = 0; j < half; ++j) builder.Connect(aggregations[i], cores[place * half + j], options.uplink);
  }
  return builder.topology();
}

Topology RailOptimised(const GeneratorOptions& options, uint32_t hosts, uint32_t rails, uint32_t hosts_per_group,
                       uint32_t spines) {
  const uint32_t groups = (hosts + hosts_per_group - 1) / hosts_per_group;
  TopologyBuilder builder;
  const auto ends = AddHosts(hosts, rails, &builder);
  std::vector<uint32_t> rail_switches;
  for (uint32_t group = 0; group < groups; ++group) {
    for (uint32_t rail = 0; rail < rails; ++rail) {
      rail_switches.push_back(builder.AddSwitch(absl::StrCat("group", group, "-rail", rail), options.switches));
    }
  }
  const auto upper = AddSwitches("spine", spines, options.switches, &builder);
  for (uint32_t i = 0; i < hosts; ++i) {
    for (uint32_t rail = 0; rail < rails; ++rail) {
      builder.Connect(ends[i], rail_switches[i / hosts_per_group * rails + rail], options.host);
    }
  }
  for (uint32_t lower : rail_switches) {
    for (uint32_t spine : upper) builder.Connect(lower, spine, options.uplink);
  }
  return builder.topology();
}

}  // namespace tokamak::sim
