// Many to one behind one switch: with PFC nothing is lost and the wire to the receiver never rests.
#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "sim/fabric/topology/generators.h"
#include "tests/sim/fabric/nic_rig.h"

namespace tokamak::sim {
namespace {

constexpr uint32_t kSenders = 16;
constexpr uint32_t kBytes = 1'000'000;

struct Incast {
  const char* name;
  uint32_t mtu;
  uint64_t xoff;  // 0: dynamic
  bool own_loops;
};

class IncastTest : public testing::TestWithParam<Incast> {};

TEST_P(IncastTest, WithPfcNothingIsLostAndTheWireNeverRests) {
  const Incast& one = GetParam();
  GeneratorOptions options;
  options.switches.pfc.xoff = one.xoff;
  options.switches.pfc.xon = one.xoff / 2;
  options.switches.buffer.bytes = 4 << 20;
  RigOptions rig_options;
  rig_options.own_loops = one.own_loops;
  NicRig rig(Star(options, kSenders + 1), rig_options);
  for (uint32_t i = 1; i <= kSenders; ++i) {
    rig.Post(rig.Connect(i, 0, one.mtu), verbs::Opcode::kWrite, kBytes, i);
  }
  const base::Time start = rig.scheduler().Now();
  rig.RunUntilCompleted(kSenders);

  // The first packet comes to the switch, then all of them go on one behind the other, then the
  // last acknowledgement comes back.
  const uint64_t packets = (kBytes + one.mtu - 1) / one.mtu;
  const uint64_t wire = kSenders * (kBytes + 82 * packets + 16);
  const auto expected = static_cast<int64_t>((one.mtu + 98 + wire + 2 * 86) * 80) + 4'000'000;
  EXPECT_EQ((rig.completed().back().time - start).picoseconds(), expected);

  EXPECT_GT(rig.Pauses(), 0u);
  EXPECT_EQ(rig.Dropped(), 0u);
  EXPECT_EQ(rig.Counters().packets_retransmitted, 0u);
  EXPECT_EQ(rig.Counters().timeouts, 0u);
  EXPECT_TRUE(rig.arrived(kBytes));
  rig.ExpectAllAccountedFor();
}

INSTANTIATE_TEST_SUITE_P(Thresholds, IncastTest,
                         testing::Values(Incast{"Mtu4096", 4096, 0, false}, Incast{"Mtu1024", 1024, 0, false},
                                         Incast{"Mtu4096Static", 4096, 60'000, false},
                                         Incast{"Mtu4096OwnLoops", 4096, 0, true}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(LossyIncastTest, WithoutPfcPacketsAreDroppedAndSentAgain) {
  GeneratorOptions options;
  options.switches.pfc.lossless = 0;
  options.switches.buffer.bytes = 1 << 20;
  NicRig rig(Star(options, 5));
  for (uint32_t i = 1; i <= 4; ++i) rig.Post(rig.Connect(i, 0), verbs::Opcode::kWrite, kBytes, i);
  rig.RunUntilCompleted(4, base::Seconds(10));
  EXPECT_GT(rig.Dropped(), 0u);
  EXPECT_GT(rig.Counters().packets_retransmitted, 0u);
  EXPECT_TRUE(rig.arrived(kBytes));
  rig.ExpectAllAccountedFor();
}

TEST(IncastFramesTest, FramesAreUsedAgain) {
  NicRig rig(Star({}, 3));
  const NicRig::Flow first = rig.Connect(1, 0);
  const NicRig::Flow second = rig.Connect(2, 0);
  const auto round = [&] {
    rig.completed().clear();
    rig.Post(first, verbs::Opcode::kWrite, kBytes);
    rig.Post(second, verbs::Opcode::kWrite, kBytes);
    rig.RunUntilCompleted(2);
  };
  round();
  const uint64_t made = rig.fabric().frames_made();
  for (int i = 0; i < 3; ++i) round();
  EXPECT_EQ(rig.fabric().frames_made(), made);
}

}  // namespace
}  // namespace tokamak::sim
