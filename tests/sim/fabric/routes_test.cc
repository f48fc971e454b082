// Ways through a topology: shortest, spread by flow, and found again when a cable goes down.
#include "sim/fabric/topology/routes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "sim/fabric/topology/generators.h"
#include "tests/sim/fabric/nic_rig.h"

namespace tokamak::sim {
namespace {

RouteTable FourWays(uint64_t seed) {
  RouteTable table(seed, 1);
  table.Set(0, table.AddGroup({10, 11, 12, 13}));
  return table;
}

// Within five standard deviations of an even share.
void ExpectEven(const std::vector<int>& counts) {
  double sum = 0;
  for (int count : counts) sum += count;
  const double share = 1.0 / static_cast<double>(counts.size());
  for (int count : counts) EXPECT_NEAR(count, sum * share, 5 * std::sqrt(sum * share * (1 - share)));
}

TEST(RouteTableTest, SpreadsFlowsEvenlyAndKeepsEachOnItsWay) {
  const RouteTable table = FourWays(7);
  std::vector<int> counts(4);
  for (uint32_t flow = 0; flow < 40'000; ++flow) {
    const uint32_t port = table.Pick(0, flow);
    ASSERT_EQ(table.Pick(0, flow), port);
    ++counts[port - 10];
  }
  ExpectEven(counts);
}

TEST(RouteTableTest, SwitchesChooseIndependently) {
  const RouteTable below = FourWays(1);
  const RouteTable above = FourWays(2);
  std::vector<int> counts(4);
  for (uint32_t flow = 0; flow < 40'000; ++flow) {
    if (below.Pick(0, flow) == 10) ++counts[above.Pick(0, flow) - 10];
  }
  ExpectEven(counts);
}

TEST(RouteTableTest, AnUnreachableHostHasNoRoute) {
  RouteTable table(1, 2);
  EXPECT_EQ(table.Pick(0, 1), RouteTable::kNoPort);
  EXPECT_EQ(table.Pick(2, 1), RouteTable::kNoPort);
  table.Set(1, table.AddGroup({}));
  EXPECT_EQ(table.Pick(1, 1), RouteTable::kNoPort);
}

// All ports that a switch would choose for a destination.
std::set<uint32_t> PortsOf(const RouteTable& table, uint32_t destination) {
  std::set<uint32_t> ports;
  for (uint32_t flow = 0; flow < 1000; ++flow) ports.insert(table.Pick(destination, flow));
  return ports;
}

TEST(RoutesTest, AFatTreeUsesExactlyItsShortestPaths) {
  const Topology tree = FatTree({}, 4);
  const auto tables = FindRoutes(tree, std::vector<bool>(tree.cables.size(), true), base::Random(1));
  ASSERT_EQ(tables.size(), 20u);
  // Edge 0: hosts 0 and 1 at ports 0 and 1, aggregation switches at 2 and 3.
  EXPECT_EQ(PortsOf(tables[0], 0), (std::set<uint32_t>{0}));
  EXPECT_EQ(PortsOf(tables[0], 1), (std::set<uint32_t>{1}));
  EXPECT_EQ(PortsOf(tables[0], 2), (std::set<uint32_t>{2, 3})) << "the same pod";
  EXPECT_EQ(PortsOf(tables[0], 15), (std::set<uint32_t>{2, 3}));
  // Aggregation 0 (switch 8): edges at ports 0 and 1, cores at 2 and 3.
  EXPECT_EQ(PortsOf(tables[8], 2), (std::set<uint32_t>{1}));
  EXPECT_EQ(PortsOf(tables[8], 15), (std::set<uint32_t>{2, 3}));
  // Core 0 (switch 16): one port for each pod.
  EXPECT_EQ(PortsOf(tables[16], 15), (std::set<uint32_t>{3}));
}

TEST(RoutesTest, ACableThatIsDownIsNotUsed) {
  const Topology fabric = LeafSpine({}, 2, 2, 1);  // cables: 2 hosts, then leaf0 to both spines, leaf1 to both
  std::vector<bool> up(fabric.cables.size(), true);
  up[4] = false;  // leaf1 to spine0
  const auto tables = FindRoutes(fabric, up, base::Random(1));
  EXPECT_EQ(PortsOf(tables[0], 1), (std::set<uint32_t>{2})) << "by spine1 alone";
  EXPECT_EQ(PortsOf(tables[2], 1), (std::set<uint32_t>{0})) << "spine0 goes round by leaf0";
  up[5] = false;
  EXPECT_EQ(PortsOf(FindRoutes(fabric, up, base::Random(1))[0], 1), (std::set<uint32_t>{RouteTable::kNoPort}));
}

TEST(ReroutingTest, TransfersSurviveACableThatGoesDown) {
  RigOptions options;
  options.fabric.reroute_delay = base::Microseconds(20);
  NicRig rig(LeafSpine({}, 2, 2, 2), options);
  verbs::ReliabilityOptions reliability;
  reliability.ack_timeout = base::Microseconds(100);
  const NicRig::Flow flow = rig.Connect(0, 2, 4096, reliability);
  rig.Post(flow, verbs::Opcode::kWrite, 1 << 20);
  rig.scheduler().RunFor(base::Microseconds(20));
  // The cable of leaf0 that it takes, of cables 4 and 5.
  const uint32_t taken = rig.fabric().link(4, 0).counters().sent > 0 ? 4 : 5;
  const uint32_t other = 9 - taken;
  EXPECT_EQ(rig.fabric().link(other, 0).counters().sent, 0u);
  rig.fabric().SetCableUp(taken, false);
  rig.RunUntilCompleted(1);
  EXPECT_GT(rig.fabric().link(taken, 0).counters().dropped_down, 0u);
  EXPECT_GT(rig.fabric().link(other, 0).counters().sent, 100u);
  EXPECT_TRUE(rig.arrived(1 << 20));

  rig.fabric().SetCableUp(taken, true);
  rig.scheduler().RunFor(base::Microseconds(30));
  const uint64_t before = rig.fabric().link(taken, 0).counters().delivered;
  rig.completed().clear();
  rig.Post(flow, verbs::Opcode::kWrite, 1 << 20);
  rig.RunUntilCompleted(1);
  EXPECT_GT(rig.fabric().link(taken, 0).counters().delivered, before + 200) << "back on its old way";
  rig.ExpectAllAccountedFor();
}

TEST(ReroutingTest, PacketsWithoutARouteAreDroppedAndCounted) {
  NicRig rig(LeafSpine({}, 2, 1, 1));
  verbs::ReliabilityOptions reliability;
  reliability.ack_timeout = base::Microseconds(100);
  reliability.retry_count = 1;
  const NicRig::Flow flow = rig.Connect(0, 1, 4096, reliability);
  rig.fabric().SetCableUp(3, false);  // leaf1 to the spine
  rig.Post(flow, verbs::Opcode::kWrite, 4096);
  rig.scheduler().RunFor(base::Seconds(1));
  ASSERT_EQ(rig.completed().size(), 1u);
  EXPECT_EQ(rig.completed()[0].status, verbs::CompletionStatus::kRetryExceeded);
  EXPECT_EQ(rig.fabric().switch_at(0).counters(0).drops[static_cast<size_t>(DropReason::kNoRoute)], rig.Dropped());
  EXPECT_GT(rig.Dropped(), 1u);
}

TEST(EcmpTest, FlowsOfManyQueuePairsUseAllSpines) {
  NicRig rig(LeafSpine({}, 2, 4, 1));
  for (int i = 0; i < 64; ++i) rig.Post(rig.Connect(0, 1), verbs::Opcode::kWrite, 4096);
  rig.RunUntilCompleted(64);
  for (uint32_t cable = 2; cable < 6; ++cable) {
    // 16 of 64 on average; fewer than 5 or more than 30 would be odd.
    EXPECT_GE(rig.fabric().link(cable, 0).counters().sent, 5u) << cable;
    EXPECT_LE(rig.fabric().link(cable, 0).counters().sent, 30u) << cable;
  }
}

}  // namespace
}  // namespace tokamak::sim
