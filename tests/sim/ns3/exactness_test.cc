// SPDX-License-Identifier: GPL-2.0-only
//
// A transfer on ns-3 takes the time that arithmetic says, and has the events that it has on
// sim_loop.
#include <functional>
#include <utility>

#include "ns3/names.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"
#include "sim/fabric/hash_observer.h"
#include "sim/fabric/topology/generators.h"
#include "sim/fabric/topology/topology_file.h"
#include "sim/time/sim_loop.h"
#include "tests/sim/ns3/star_fixture.h"

namespace tokamak::sim {
namespace {

constexpr uint32_t kBytes = 300'000;
constexpr uint32_t kHosts = 5;

class Ns3ExactnessTest : public StarTest {};

// Host, switch, host; 100 Gb/s; links of 1 us; see docs/simulation.md.
TEST_F(Ns3ExactnessTest, AnIdleFabricTakesWhatArithmeticSays) {
  struct Case {
    uint32_t mtu;
    uint32_t bytes;
    int64_t picoseconds;
  };
  helper_->SetNicAttribute("Congestion", ns3::StringValue("Fixed"));
  helper_->SetNicAttribute("WindowPackets", ns3::UintegerValue(1024));
  Draw(2);
  OpenNics();
  for (const Case& one : {Case{4096, 64, 4'039'680}, Case{4096, 4096, 4'684'800}, Case{4096, 64 << 10, 9'698'400},
                          Case{4096, 1 << 20, 89'916'000}, Case{1024, 4096, 4'458'720}, Case{1024, 64 << 10, 9'767'520},
                          Case{1024, 1 << 20, 94'708'320}}) {
    const RawWrites::Flow flow = writes_->Connect(0, 1, one.mtu);
    const base::Time start = loop().Now();
    const size_t before = writes_->completed().size();
    writes_->Write(flow, one.bytes);
    RunUntilCompleted(before + 1);
    EXPECT_EQ((writes_->completed().back() - start).picoseconds(), one.picoseconds)
        << one.bytes << " B at an MTU of " << one.mtu;
    EXPECT_TRUE(writes_->arrived(one.bytes));
  }
}

struct Result {
  uint64_t hash = 0;
  uint64_t events = 0;
  std::vector<base::Time> completed;
};

GeneratorOptions Congested() {
  GeneratorOptions options;
  options.switches.ecn = {20'000, 80'000, 0.2};
  options.switches.pfc.xoff = 30'000;
  options.switches.pfc.xon = 20'000;
  return options;
}

// The incast of StarTest without ns-3: one NIC for each interface.
Result OnSimLoop(const Topology& topology, uint64_t seed) {
  Scheduler scheduler;
  SimLoop loop(scheduler);
  HashObserver hash(loop);
  FabricOptions options;
  options.seed = seed;
  const auto fabric = *SwitchedFabric::Build(loop, topology, options, &hash);
  base::NoTrace trace;
  std::vector<std::unique_ptr<verbs::soft::SoftDevice>> devices;
  RawWrites writes(loop);
  for (const Topology::Host& host : topology.hosts) {
    verbs::soft::DeviceOptions device;
    device.address = host.addresses[0];
    device.seed = devices.size() + 1;
    device.congestion = verbs::soft::CongestionControl::kDcqcn;
    devices.push_back(*verbs::soft::OpenSoftDevice(loop, *fabric, trace, device));
    writes.Add(loop, *devices.back());
  }
  const size_t senders = devices.size() - 1;
  for (uint32_t i = 1; i <= senders; ++i) writes.Write(writes.Connect(i, 0, 1024), kBytes);
  EXPECT_TRUE(
      scheduler.RunUntil([&] { return writes.completed().size() == senders; }, base::Time() + base::Seconds(1)));
  return {hash.hash(), hash.events(), writes.completed()};
}

TEST_F(Ns3ExactnessTest, AnIncastHasTheEventsThatItHasOnSimLoop) {
  const GeneratorOptions congested = Congested();
  helper_->SetNetworkAttribute("Seed", ns3::UintegerValue(7));
  helper_->SetSwitchAttribute("EcnMinimum", ns3::UintegerValue(congested.switches.ecn.kmin));
  helper_->SetSwitchAttribute("EcnMaximum", ns3::UintegerValue(congested.switches.ecn.kmax));
  helper_->SetSwitchAttribute("Xoff", ns3::UintegerValue(congested.switches.pfc.xoff));
  helper_->SetSwitchAttribute("Xon", ns3::UintegerValue(congested.switches.pfc.xon));
  HashObserver hash(loop());
  helper_->GetNetwork()->SetObserver(&hash);
  Draw(kHosts);
  OpenNics();
  Incast(kBytes);
  const Topology star = Star(congested, kHosts);
  const Result other = OnSimLoop(star, 7);
  EXPECT_EQ(hash.hash(), other.hash);
  EXPECT_EQ(hash.events(), other.events);
  EXPECT_EQ(writes_->completed(), other.completed);
  EXPECT_GT(other.events, 5000u);
  EXPECT_NE(OnSimLoop(star, 8).hash, other.hash);
  helper_->GetNetwork()->SetObserver(nullptr);
}

// Ports that are not in the order of the cables, parallel cables, losses of one direction.
TEST_F(Ns3ExactnessTest, ATopologyFromAFileRunsAsOnSimLoop) {
  const auto topology = ParseTopology(R"({
    "link": {"rate": "40Gb/s", "delay": "700ns"},
    "switch": {"ecn": {"kmin": 20000, "kmax": 80000, "pmax": 0.3}, "weights": [1, 2, 3, 4, 5, 6, "strict", "strict"],
               "watchdog": {"detection": "5ms", "action": "forward"}},
    "hosts": [{"name": "to"}, {"name": "x"}, {"name": "y", "addresses": ["192.168.0.9"]}, {"name": "z"}],
    "switches": [{"name": "left", "switch": {"pfc": {"lossless": [3], "xoff": 30000, "xon": 20000}}},
                 {"name": "right", "switch": {"buffer": {"bytes": "1MiB", "ingress_alpha": 0.5}}}],
    "cables": [
      {"ends": ["left:3", "right:1"], "loss": {"nth": [20]}, "loss_back": {"rate": 0.002}},
      {"ends": ["right:2", "left:2"], "delay": "900ns"},
      {"ends": ["to", "left:0"], "rate": "100Gb/s"},
      {"ends": ["right:0", "x"]}, {"ends": ["y", "right:3"]}, {"ends": ["z", "left:1"]}
    ]
  })");
  ASSERT_TRUE(topology.ok()) << topology.status();
  helper_->SetNetworkAttribute("Seed", ns3::UintegerValue(7));
  HashObserver hash(loop());
  helper_->GetNetwork()->SetObserver(&hash);
  ports_ = helper_->Install(*topology);
  for (uint32_t i = 0; i < ports_.GetN(); ++i) hosts_.Add(ports_.Get(i)->GetNode());
  EXPECT_EQ(ns3::Names::FindName(hosts_.Get(2)), "y");
  EXPECT_EQ(port(2)->GetIpAddress(), ns3::Ipv4Address("192.168.0.9"));
  OpenNics();
  Incast(kBytes);
  const Result other = OnSimLoop(*topology, 7);
  EXPECT_EQ(hash.hash(), other.hash);
  EXPECT_EQ(hash.events(), other.events);
  EXPECT_EQ(writes_->completed(), other.completed);
  helper_->GetNetwork()->SetObserver(nullptr);
}

TEST_F(Ns3ExactnessTest, AWrongTopologyIsReportedByName) {
  Topology topology = Star({}, 2);
  topology.hosts[1].name = topology.hosts[0].name;
  EXPECT_DEATH(helper_->Install(topology), "cannot be installed: .*host0");
}

}  // namespace
}  // namespace tokamak::sim
