// Costs of simulating, in counts, which are the same on every machine: events and allocations for
// each frame on a cable, and memory for each host. Times would be comparable only on an idle
// machine.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "sim/fabric/topology/generators.h"
#include "tests/sim/fabric/nic_rig.h"
#include "tests/support/allocations.h"

namespace tokamak::sim {
namespace {

constexpr uint32_t kBytes = 1 << 20;
constexpr uint32_t kMtu = 1024;

RigOptions Dcqcn() {
  RigOptions options;
  options.nic.congestion = verbs::soft::CongestionControl::kDcqcn;
  options.nic.window_packets = 1024;
  options.nic.batch_packets = 16;
  options.nic.pause = base::Duration();
  options.phantom = true;
  return options;
}

GeneratorOptions Marking() {
  GeneratorOptions options;
  options.switches.ecn = {40'000, 160'000, 0.2};
  return options;
}

class CostTest : public testing::Test {
 protected:
  struct Cost {
    double events;  // for each transmission
    int64_t allocations;
    uint64_t transmissions;
  };

  // Returns the cost of a WRITE on each flow.
  static Cost Measure(NicRig* rig, const std::vector<NicRig::Flow>& flows) {
    rig->completed().clear();
    rig->completed().reserve(flows.size());
    const uint64_t events = rig->scheduler().tasks_run();
    const uint64_t sent = Sent(rig->fabric());
    const int64_t allocations = support::Allocations();
    for (const NicRig::Flow& flow : flows) rig->Post(flow, verbs::Opcode::kWrite, kBytes);
    rig->RunUntilCompleted(flows.size());
    const uint64_t transmissions = Sent(rig->fabric()) - sent;
    return {static_cast<double>(rig->scheduler().tasks_run() - events) / static_cast<double>(transmissions),
            support::Allocations() - allocations, transmissions};
  }

  static uint64_t Sent(SwitchedFabric& fabric) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < fabric.links(); ++i) {
      for (uint32_t end = 0; end < 2; ++end) sum += fabric.link(i, end).counters().sent;
    }
    return sum;
  }
};

TEST_F(CostTest, AnIncastTakesTwoEventsForEachTransmissionAndNoMemoryOnceItIsWarm) {
  NicRig rig(Star(Marking(), 9), Dcqcn());
  std::vector<NicRig::Flow> flows;
  for (uint32_t i = 1; i < 9; ++i) flows.push_back(rig.Connect(i, 0, kMtu));
  const Cost first = Measure(&rig, flows);
  EXPECT_GT(first.transmissions, 8u * 1024 * 2);
  EXPECT_LT(first.events, 2.0);
  Measure(&rig, flows);
  const Cost warm = Measure(&rig, flows);
  EXPECT_LT(warm.events, 2.0);
  EXPECT_LE(warm.allocations, 10) << "of " << warm.transmissions << " transmissions";
}

TEST_F(CostTest, APermutationOnAFatTreeTakesLess) {
  NicRig rig(FatTree(Marking(), 4), Dcqcn());
  std::vector<NicRig::Flow> flows;
  for (uint32_t i = 0; i < 16; ++i) flows.push_back(rig.Connect(i, (i + 9) % 16, kMtu));
  EXPECT_LT(Measure(&rig, flows).events, 1.7);
}

// A NIC with one queue pair at each end, its interface, cables, and its part of the switches.
TEST_F(CostTest, AHostOfAFatTreeTakesLittleMemory) {
  constexpr uint32_t kHosts = 128;
  const Topology topology = FatTree(Marking(), 8);
  const int64_t before = support::AllocatedBytes();
  NicRig rig(topology, Dcqcn());
  for (uint32_t i = 0; i < kHosts; ++i) rig.Connect(i, (i + kHosts / 2 + 1) % kHosts, kMtu);
  const int64_t shared = 2 << 20;  // the bytes that are sent and written
  EXPECT_LT((support::AllocatedBytes() - before - shared) / kHosts, 60'000);
}

}  // namespace
}  // namespace tokamak::sim
