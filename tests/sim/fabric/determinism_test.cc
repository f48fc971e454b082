// The same seed gives the same events at the same times, another seed others.
#include "gtest/gtest.h"
#include "sim/fabric/topology/generators.h"
#include "tests/sim/fabric/nic_rig.h"

namespace tokamak::sim {
namespace {

struct Result {
  uint64_t hash;
  uint64_t events;
};

// Incast over a leaf-spine with losses, damage, marks and a cable that goes down.
Result RunOnce(uint64_t seed, bool phantom = false) {
  GeneratorOptions options;
  options.switches.ecn = {50'000, 200'000, 0.2};
  options.switches.buffer.bytes = 2 << 20;
  Topology topology = LeafSpine(options, 3, 2, 2);
  for (Topology::Cable& cable : topology.cables) {
    cable.loss[0].rate = 0.001;
    cable.loss[1].burst_rate = 0.0005;
    cable.loss[1].burst_length = 3;
    cable.loss[1].corrupt = 0.0005;
  }
  RigOptions rig_options;
  rig_options.fabric.seed = seed;
  rig_options.phantom = phantom;
  rig_options.nic = FixedWindow(64);
  NicRig rig(topology, rig_options);
  verbs::ReliabilityOptions reliability;
  reliability.ack_timeout = base::Microseconds(200);
  for (uint32_t i = 1; i < 6; ++i) {
    rig.Post(rig.Connect(i, 0, 1024, reliability), verbs::Opcode::kWrite, 300'000, i);
    rig.Post(rig.Connect(0, i, 1024, reliability), verbs::Opcode::kRead, 100'000, i);
  }
  rig.scheduler().RunFor(base::Microseconds(40));
  rig.fabric().SetCableUp(7, false);
  rig.scheduler().RunFor(base::Microseconds(100));
  rig.fabric().SetCableUp(7, true);
  rig.RunUntilCompleted(10);
  rig.ExpectAllAccountedFor();
  EXPECT_NE(rig.arrived(300'000), phantom);
  return {rig.hash(), rig.hashed_events()};
}

TEST(DeterminismTest, ASeedGivesTheSameRunAgain) {
  const Result first = RunOnce(1);
  const Result second = RunOnce(1);
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_EQ(first.events, second.events);
  EXPECT_GT(first.events, 10'000u);
  EXPECT_NE(RunOnce(2).hash, first.hash);
}

TEST(DeterminismTest, PayloadWithoutMemoryTakesTheSameTimes) {
  EXPECT_EQ(RunOnce(1, true).hash, RunOnce(1, false).hash);
}

}  // namespace
}  // namespace tokamak::sim
