// An idle fabric takes as long as arithmetic says, to the nanosecond, with the NIC as it is.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sim/fabric/topology/generators.h"
#include "tests/sim/fabric/nic_rig.h"

namespace tokamak::sim {
namespace {

struct Case {
  verbs::Opcode opcode;
  uint32_t mtu;
  uint32_t bytes;
  int64_t picoseconds;
};

// host, switch, host; 100 Gb/s; links of 1 us.
constexpr Case kCases[] = {
    {verbs::Opcode::kWrite, 4096, 64, 4'039'680},       {verbs::Opcode::kWrite, 4096, 4096, 4'684'800},
    {verbs::Opcode::kWrite, 4096, 64 << 10, 9'698'400}, {verbs::Opcode::kWrite, 4096, 1 << 20, 89'916'000},
    {verbs::Opcode::kWrite, 1024, 4096, 4'458'720},     {verbs::Opcode::kWrite, 1024, 64 << 10, 9'767'520},
    {verbs::Opcode::kWrite, 1024, 1 << 20, 94'708'320}, {verbs::Opcode::kRead, 4096, 4096, 4'684'800},
    {verbs::Opcode::kRead, 4096, 64 << 10, 9'698'720},  {verbs::Opcode::kRead, 4096, 1 << 20, 89'920'800},
};

class ExactnessTest : public testing::TestWithParam<bool> {};

TEST_P(ExactnessTest, AnIdleFabricTakesWhatArithmeticSays) {
  RigOptions options;
  options.own_loops = GetParam();
  NicRig rig(Star({}, 2), options);
  for (const Case& one : kCases) {
    const NicRig::Flow flow = rig.Connect(0, 1, one.mtu);
    EXPECT_EQ(rig.TimeOf(flow, one.opcode, one.bytes).picoseconds(), one.picoseconds)
        << one.bytes << " B at an MTU of " << one.mtu;
    EXPECT_TRUE(rig.arrived(one.bytes));
  }
  EXPECT_EQ(rig.Counters().packets_retransmitted, 0u);
  rig.ExpectAllAccountedFor();
}

INSTANTIATE_TEST_SUITE_P(Loops, ExactnessTest, testing::Bool(),
                         [](const auto& one) { return std::string(one.param ? "OfTheNics" : "OfTheNetwork"); });

// The time of a WRITE from the wire bytes of its packets alone: the switch stores each before it
// forwards it, so the last byte comes by the packet that holds the others up most; then the
// acknowledgement of 86 bytes takes the same way back.
int64_t WriteTime(const std::vector<uint32_t>& wire, int64_t picoseconds_per_byte, int64_t delay) {
  int64_t most = 0;
  for (size_t k = 0; k < wire.size(); ++k) {
    const auto middle = wire.begin() + static_cast<ptrdiff_t>(k);
    most = std::max(
        most, std::accumulate(wire.begin(), middle + 1, int64_t{0}) + std::accumulate(middle, wire.end(), int64_t{0}));
  }
  return (most + 2 * 86) * picoseconds_per_byte + 4 * delay;
}

TEST(ZeroLoadTest, AWriteTakesTheTimeOfTheFormulaAtAllRatesAndMtus) {
  for (uint64_t gigabits : {25, 100, 200, 400}) {
    for (uint32_t mtu : {256u, 1024u, 4096u}) {
      GeneratorOptions options;
      options.host = {Rate::Gigabits(gigabits), base::Nanoseconds(700)};
      NicRig rig(Star(options, 2));
      const NicRig::Flow flow = rig.Connect(0, 1, mtu);
      for (uint32_t bytes : {1u, 255u, 4096u, 10'001u, 50'000u}) {
        std::vector<uint32_t> wire;
        for (uint32_t at = 0; at < bytes; at += mtu) {
          wire.push_back((std::min(mtu, bytes - at) + 3) / 4 * 4 + 82 + (at == 0 ? 16 : 0));
        }
        EXPECT_EQ(rig.TimeOf(flow, verbs::Opcode::kWrite, bytes).picoseconds(),
                  WriteTime(wire, 8000 / static_cast<int64_t>(gigabits), 700'000))
            << bytes << " B, MTU " << mtu << ", " << gigabits << " Gb/s";
      }
    }
  }
}

class GoodputTest : public testing::TestWithParam<verbs::Opcode> {};

// Long transfers fill the wire: rate * MTU / (MTU + 82).
TEST_P(GoodputTest, IsTheShareOfPayloadOnTheWire) {
  for (uint64_t gigabits : {25, 40, 100, 200, 400}) {
    for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
      GeneratorOptions options;
      options.host.rate = Rate::Gigabits(gigabits);
      RigOptions rig_options;
      rig_options.nic = FixedWindow(4096);
      const uint32_t bytes = mtu * 3000;
      rig_options.memory = bytes;
      NicRig rig(Star(options, 2), rig_options);
      const NicRig::Flow flow = rig.Connect(0, 1, mtu);
      // The last piece waits for what makes others late; what is measured lies in the middle.
      const base::Duration packet = options.host.rate.TimeOf(mtu + 82);
      rig.Post(flow, GetParam(), bytes);
      rig.scheduler().RunFor(base::Microseconds(5) + packet * 200);
      const verbs::soft::SoftDevice& receiver = *(GetParam() == verbs::Opcode::kRead ? flow.from : flow.to)->device;
      const uint64_t before = receiver.counters().queue_pairs.bytes_received;
      constexpr int64_t kPackets = 2000;
      rig.scheduler().RunFor(packet * kPackets);
      const uint64_t received = receiver.counters().queue_pairs.bytes_received - before;
      EXPECT_NEAR(static_cast<double>(received), static_cast<double>(mtu) * kPackets, mtu * kPackets / 1000.0)
          << "MTU " << mtu << ", " << gigabits << " Gb/s";
      rig.RunUntilCompleted(1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Opcodes, GoodputTest, testing::Values(verbs::Opcode::kWrite, verbs::Opcode::kRead),
                         [](const auto& one) {
                           return std::string(one.param == verbs::Opcode::kRead ? "Read" : "Write");
                         });

}  // namespace
}  // namespace tokamak::sim
