// SPDX-License-Identifier: GPL-2.0-only
//
// What a transfer takes on ns-3 is what arithmetic says, and to the last event what it is on
// sim_loop.
#include <functional>
#include <utility>

#include "ns3/string.h"
#include "ns3/uinteger.h"
#include "sim/fabric/generators.h"
#include "sim/fabric/hash_observer.h"
#include "sim/sim_loop.h"
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

// The incast of StarTest without ns-3.
Result OnSimLoop(uint64_t seed) {
  Scheduler scheduler;
  SimLoop loop(scheduler);
  HashObserver hash(loop);
  FabricOptions options;
  options.seed = seed;
  const Topology topology = Star(Congested(), kHosts);
  const auto fabric = *SwitchedFabric::Build(loop, topology, options, &hash);
  base::NoTrace trace;
  std::vector<std::unique_ptr<verbs::soft::SoftDevice>> devices;
  RawWrites writes(loop);
  for (uint32_t i = 0; i < kHosts; ++i) {
    verbs::soft::DeviceOptions device;
    device.address = topology.hosts[i].addresses[0];
    device.seed = i + 1;
    device.congestion = verbs::soft::CongestionControl::kDcqcn;
    devices.push_back(*verbs::soft::OpenSoftDevice(loop, *fabric, trace, device));
    writes.Add(loop, *devices.back());
  }
  for (uint32_t i = 1; i < kHosts; ++i) writes.Write(writes.Connect(i, 0, 1024), kBytes);
  EXPECT_TRUE(
      scheduler.RunUntil([&] { return writes.completed().size() == kHosts - 1; }, base::Time() + base::Seconds(1)));
  return {hash.hash(), hash.events(), writes.completed()};
}

TEST_F(Ns3ExactnessTest, AnIncastIsEventForEventWhatItIsOnSimLoop) {
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
  const Result other = OnSimLoop(7);
  EXPECT_EQ(hash.hash(), other.hash);
  EXPECT_EQ(hash.events(), other.events);
  EXPECT_EQ(writes_->completed(), other.completed);
  EXPECT_GT(other.events, 5000u);
  EXPECT_NE(OnSimLoop(8).hash, other.hash);
  helper_->GetNetwork()->SetObserver(nullptr);
}

}  // namespace
}  // namespace tokamak::sim
