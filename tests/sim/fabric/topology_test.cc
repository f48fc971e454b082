// The drawings of generators, and mistakes that a drawing must not have.
#include "sim/fabric/topology/topology.h"

#include <functional>

#include "gtest/gtest.h"
#include "sim/fabric/topology/generators.h"
#include "sim/fabric/topology/topology_builder.h"
#include "tests/sim/fabric/nic_rig.h"

namespace tokamak::sim {
namespace {

void ExpectSize(const Topology& topology, size_t hosts, size_t switches, size_t cables) {
  EXPECT_TRUE(topology.Check().ok()) << topology.Check();
  EXPECT_EQ(topology.hosts.size(), hosts);
  EXPECT_EQ(topology.switches.size(), switches);
  EXPECT_EQ(topology.cables.size(), cables);
}

TEST(GeneratorsTest, GeneratorsDrawTheirTopology) {
  ExpectSize(Pair({}), 2, 0, 1);
  ExpectSize(Star({}, 17), 17, 1, 17);
  ExpectSize(Dumbbell({}, 4), 8, 2, 9);
  ExpectSize(ParkingLot({}, 4, 2), 8, 4, 11);
  ExpectSize(LeafSpine({}, 4, 2, 8), 32, 6, 40);
  ExpectSize(FatTree({}, 4), 16, 20, 48);
  ExpectSize(FatTree({}, 16), 1024, 320, 3072);
  ExpectSize(RailOptimised({}, 8, 4, 4, 2), 8, 10, 8 * 4 + 8 * 2);
}

// From each interface to each other one.
TEST(GeneratorsTest, EveryHostReachesEveryOther) {
  for (const Topology& topology : {Pair({}), Dumbbell({}, 2), ParkingLot({}, 3, 1), LeafSpine({}, 2, 2, 2),
                                   FatTree({}, 4), RailOptimised({}, 4, 2, 2, 1)}) {
    NicRig rig(topology);
    const uint32_t count = rig.fabric().interfaces();
    size_t expected = 0;
    for (uint32_t from = 0; from < count; ++from) {
      for (uint32_t to = 0; to < count; ++to) {
        if (from == to) continue;
        rig.Post(rig.Connect(from, to), verbs::Opcode::kWrite, 100);
        ++expected;
      }
    }
    rig.RunUntilCompleted(expected);
    rig.ExpectAllAccountedFor();
    EXPECT_EQ(rig.Dropped(), 0u);
  }
}

TEST(GeneratorsTest, InAParkingLotTheFirstPassesEverySwitch) {
  NicRig rig(ParkingLot({}, 4, 1));
  const auto time = rig.TimeOf(rig.Connect(0, 3), verbs::Opcode::kWrite, 64);
  EXPECT_EQ(time.picoseconds(), 5 * (162 + 86) * 80 + 10 * 1'000'000);
}

TEST(TopologyTest, MistakesAreNamed) {
  struct Mistake {
    const char* says;
    std::function<void(Topology&)> make;
  };
  const Mistake mistakes[] = {
      {"two nodes are called 'host0'", [](Topology& t) { t.hosts[1].name = "host0"; }},
      {"two nodes are called 'host0'", [](Topology& t) { t.switches[0].name = "host0"; }},
      {"a node has no name", [](Topology& t) { t.switches[0].name = ""; }},
      {"port 0 of 'host2' dangles", [](Topology& t) { t.cables.pop_back(); }},
      {"port 1 of 'switch0' dangles", [](Topology& t) { t.cables[1].ends[1].port = 7; }},
      {"port 0 of 'switch0' has two cables", [](Topology& t) { t.cables[1].ends[1].port = 0; }},
      {"port 3 of host 'host1', which has 1", [](Topology& t) { t.cables[1].ends[0].port = 3; }},
      {"node 9", [](Topology& t) { t.cables[1].ends[0].node = 9; }},
      {"connects 'switch0' with itself",
       [](Topology& t) {
         t.cables[1].ends[0] = {3, 8};
       }},
      {"the same address 10.0.0.1", [](Topology& t) { t.hosts[2].addresses = t.hosts[0].addresses; }},
      {"host 'host1' has no interface", [](Topology& t) { t.hosts[1].addresses.clear(); }},
      {"nothing leads from 'host0' to 'lonely'",
       [](Topology& t) {
         t.switches.push_back({"lonely", {}});
       }},
      {"switch 'switch0': kmin is 9",
       [](Topology& t) {
         t.switches[0].options.ecn = {9, 5, 0.1};
       }},
      {"the cable from 'host1' to 'switch0': rate is 2", [](Topology& t) { t.cables[1].loss[0].rate = 2; }},
      {"delay is negative", [](Topology& t) { t.cables[1].parameters.delay = base::Nanoseconds(-1); }},
      {"there is no host", [](Topology& t) { t = Topology(); }},
  };
  ASSERT_TRUE(Star({}, 3).Check().ok());
  for (const Mistake& mistake : mistakes) {
    Topology topology = Star({}, 3);
    mistake.make(topology);
    const absl::Status status = topology.Check();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(mistake.says), absl::string_view::npos) << mistake.says << ": " << status;
  }
}

TEST(TopologyTest, ASwitchWithoutRoomForItsHeadroomIsNotBuilt) {
  GeneratorOptions options;
  options.switches.buffer.bytes = 100'000;
  Scheduler scheduler;
  SimLoop loop(scheduler);
  const auto fabric = SwitchedFabric::Build(loop, Star(options, 4), {}, nullptr);
  EXPECT_NE(fabric.status().message().find("switch 'switch0': a buffer of"), absl::string_view::npos)
      << fabric.status();
}

}  // namespace
}  // namespace tokamak::sim
