// Lost packets are sent again, and no more than arithmetic says.
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sim/fabric/topology/generators.h"
#include "tests/sim/fabric/nic_rig.h"

namespace tokamak::sim {
namespace {

struct Rig {
  uint32_t mtu;
  uint64_t gigabits;
  uint64_t retransmitted;
};

class OneLossTest : public testing::TestWithParam<Rig> {};

// The packet behind the lost one comes to the receiver, which says so; meanwhile the sender goes
// on.
TEST_P(OneLossTest, OneLossCostsOneNakAndThePacketsSentMeanwhile) {
  const Rig& one = GetParam();
  GeneratorOptions options;
  options.host.rate = Rate::Gigabits(one.gigabits);
  NicRig rig(Star(options, 2));
  LossOptions loss;
  loss.nth = {20};
  rig.fabric().SetLoss(0, 0, loss);
  rig.Post(rig.Connect(0, 1, one.mtu), verbs::Opcode::kWrite, 200 * one.mtu);
  rig.RunUntilCompleted(1);

  const int64_t byte = 8000 / static_cast<int64_t>(one.gigabits);
  const int64_t packet = (one.mtu + 82) * byte;
  const auto expected = static_cast<uint64_t>(4 + (4'000'000 + 2 * 86 * byte) / packet);
  EXPECT_EQ(expected, one.retransmitted);
  EXPECT_EQ(rig.Counters().packets_retransmitted, expected);
  EXPECT_EQ(rig.Counters().naks_sent_sequence, 1u);
  EXPECT_EQ(rig.Counters().timeouts, 0u);
  EXPECT_EQ(rig.fabric().link(0, 0).counters().lost, 1u);
  EXPECT_TRUE(rig.arrived(200 * one.mtu));
  rig.ExpectAllAccountedFor();
}

INSTANTIATE_TEST_SUITE_P(Rigs, OneLossTest,
                         testing::Values(Rig{4096, 100, 16}, Rig{1024, 100, 49}, Rig{2048, 25, 9}, Rig{4096, 400, 51}),
                         [](const auto& one) {
                           return "Mtu" + std::to_string(one.param.mtu) + "Gigabits" +
                                  std::to_string(one.param.gigabits);
                         });

struct Lost {
  const char* name;
  verbs::Opcode opcode;
  uint32_t end;  // of host 0's cable: 0, what it sends; 1, what it gets
  std::vector<uint64_t> nth;
};

class LossTest : public testing::TestWithParam<Lost> {};

TEST_P(LossTest, EveryTransferCompletesDespiteLoss) {
  const Lost& one = GetParam();
  NicRig rig(Star({}, 2));
  LossOptions loss;
  loss.nth = one.nth;
  rig.fabric().SetLoss(0, one.end, loss);
  verbs::ReliabilityOptions reliability;
  reliability.ack_timeout = base::Microseconds(100);
  constexpr uint32_t kBytes = 64 * 4096;
  rig.Post(rig.Connect(0, 1, 4096, reliability), one.opcode, kBytes);
  rig.RunUntilCompleted(1);
  EXPECT_EQ(rig.fabric().link(0, one.end).counters().lost, one.nth.size());
  EXPECT_TRUE(rig.arrived(kBytes));
  rig.ExpectAllAccountedFor();
}

constexpr verbs::Opcode kWrite = verbs::Opcode::kWrite;
constexpr verbs::Opcode kRead = verbs::Opcode::kRead;

INSTANTIATE_TEST_SUITE_P(What, LossTest,
                         testing::Values(Lost{"FirstPacket", kWrite, 0, {1}}, Lost{"LastPacket", kWrite, 0, {64}},
                                         Lost{"LastPacketTwice", kWrite, 0, {64, 65}},
                                         Lost{"SomePackets", kWrite, 0, {3, 4, 20, 60}},
                                         Lost{"AllFirstAcknowledgements", kWrite, 1, {1, 2, 3}},
                                         Lost{"ReadRequest", kRead, 0, {1}}, Lost{"FirstResponse", kRead, 1, {1}},
                                         Lost{"SomeResponses", kRead, 1, {2, 30, 31}},
                                         Lost{"LastResponse", kRead, 1, {64}}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(LossAndDamageTest, LostNaksDelayAndDoNotBreak) {
  NicRig rig(Star({}, 2));
  LossOptions data;
  data.nth = {10};
  rig.fabric().SetLoss(0, 0, data);
  // Packets that come back behind the loss: the NAK for it, and more.
  LossOptions answers;
  answers.nth = {1, 2};
  rig.fabric().SetLoss(0, 1, answers);
  verbs::ReliabilityOptions reliability;
  reliability.ack_timeout = base::Microseconds(100);
  rig.Post(rig.Connect(0, 1, 4096, reliability), kWrite, 30 * 4096);
  rig.RunUntilCompleted(1);
  EXPECT_GE(rig.Counters().naks_sent_sequence, 1u);
  EXPECT_EQ(rig.Counters().naks_received_sequence + 1, rig.Counters().naks_sent_sequence) << "one was lost";
  EXPECT_TRUE(rig.arrived(30 * 4096));
}

TEST(LossAndDamageTest, DamagedPacketsAreSeenByTheReceiver) {
  NicRig rig(Star({}, 2));
  LossOptions loss;
  loss.corrupt = 0.02;
  rig.fabric().SetLoss(0, 0, loss);
  rig.Post(rig.Connect(0, 1), kWrite, 1 << 20);
  rig.RunUntilCompleted(1);
  EXPECT_GT(rig.fabric().link(0, 0).counters().corrupted, 0u);
  EXPECT_EQ(rig.nic(1).device->counters().dropped_corrupt, rig.fabric().link(0, 0).counters().corrupted);
  EXPECT_TRUE(rig.arrived(1 << 20));
  rig.ExpectAllAccountedFor();
}

}  // namespace
}  // namespace tokamak::sim
