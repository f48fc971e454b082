// Hosts outside: what they send enters like packets do, and what they get is what was sent.
#include "sim/fabric/outside_port.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/fabric/topology/generators.h"
#include "sim/time/sim_loop.h"

namespace tokamak::sim {
namespace {

using verbs::Address;
using verbs::soft::Ecn;

class OutsidePortTest : public testing::Test {
 protected:
  struct Got {
    base::Time time;
    std::string bytes;
    bool marked;
    bool corrupt;
  };

  OutsidePortTest() {
    options_.host.rate = Rate::Gigabits(1);
    options_.host.delay = base::Microseconds(1);
  }

  void Build(uint32_t hosts, uint64_t queue = 1 << 20, const LossOptions& loss = {}) {
    Topology topology = Star(options_, hosts);
    for (Topology::Cable& cable : topology.cables) cable.loss[0] = loss;
    fabric_ = *SwitchedFabric::Build(loop_, topology, {}, nullptr);
    got_.resize(hosts);
    for (uint32_t i = 0; i < hosts; ++i) {
      ports_.push_back(*fabric_->interface_at(i).OpenOutside(queue, [this, i](const ArrivedFrame& frame) {
        got_[i].push_back(
            {loop_.Now(), std::string(frame.bytes.begin(), frame.bytes.end()), frame.marked, frame.corrupt});
      }));
    }
  }

  OutsidePort::Sent Send(uint32_t from, uint32_t to, const std::string& bytes, Ecn ecn = Ecn::kNotCapable,
                         uint8_t dscp = 0) {
    OutsideFrame frame;
    frame.bytes = {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
    frame.destination = *Address::Parse("10.0.0." + std::to_string(to + 1));
    frame.ecn = ecn;
    frame.dscp = dscp;
    return ports_[from]->Send(frame);
  }

  void ExpectNothingDisappeared() {
    scheduler_.RunFor(base::Seconds(1));
    EXPECT_EQ(fabric_->frames_in_use(), 0u);
  }

  Scheduler scheduler_;
  SimLoop loop_{scheduler_};
  GeneratorOptions options_;
  std::unique_ptr<SwitchedFabric> fabric_;
  std::vector<std::unique_ptr<OutsidePort>> ports_;
  std::vector<std::vector<Got>> got_;
};

TEST_F(OutsidePortTest, AFrameArrivesUnchangedAfterItsTimeOnBothCables) {
  Build(2);
  const std::string bytes(1000, 'x');
  ASSERT_EQ(Send(0, 1, bytes), OutsidePort::Sent::kYes);
  ExpectNothingDisappeared();
  ASSERT_EQ(got_[1].size(), 1u);
  EXPECT_EQ(got_[1][0].bytes, bytes);
  EXPECT_FALSE(got_[1][0].marked);
  // 1024 bytes of 8 ns and a delay, twice.
  EXPECT_EQ(got_[1][0].time - base::Time(), base::Nanoseconds(2 * (1024 * 8 + 1000)));
  EXPECT_TRUE(got_[0].empty());
}

TEST_F(OutsidePortTest, AShortFrameTakesTheTimeOfEthernetsShortest) {
  Build(2);
  ASSERT_EQ(Send(0, 1, "short"), OutsidePort::Sent::kYes);
  ExpectNothingDisappeared();
  ASSERT_EQ(got_[1].size(), 1u);
  EXPECT_EQ(got_[1][0].bytes, "short");
  EXPECT_EQ(got_[1][0].time - base::Time(), base::Nanoseconds(2 * (84 * 8 + 1000)));
}

TEST_F(OutsidePortTest, FramesOfOnePriorityKeepTheirOrderAndAHigherOneOvertakes) {
  Build(2);
  for (const char* bytes : {"first", "second", "third"}) ASSERT_EQ(Send(0, 1, bytes), OutsidePort::Sent::kYes);
  ASSERT_EQ(Send(0, 1, "strict", Ecn::kNotCapable, 48), OutsidePort::Sent::kYes);
  ExpectNothingDisappeared();
  std::vector<std::string> order;
  for (const Got& got : got_[1]) order.push_back(got.bytes);
  EXPECT_EQ(order, (std::vector<std::string>{"first", "strict", "second", "third"}));
}

TEST_F(OutsidePortTest, UndeliverableFramesAreRefused) {
  Build(2);
  EXPECT_EQ(Send(0, 7, "x"), OutsidePort::Sent::kNobody);
  EXPECT_EQ(Send(0, 0, "x"), OutsidePort::Sent::kToItself);
  const uint32_t longest = MostWireBytes(verbs::kMaxMtu) - OutsidePort::kFramingBytes;
  EXPECT_EQ(Send(0, 1, std::string(longest, 'x')), OutsidePort::Sent::kYes);
  EXPECT_EQ(Send(0, 1, std::string(longest + 1, 'x')), OutsidePort::Sent::kTooLong);
  ExpectNothingDisappeared();
  EXPECT_EQ(got_[1].size(), 1u);
}

TEST_F(OutsidePortTest, TheQueueOfAHostsLinkIsBounded) {
  Build(2, 3 * 1024);
  const std::string bytes(1000, 'x');
  // One is on the wire, three wait.
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Send(0, 1, bytes), OutsidePort::Sent::kYes) << i;
  EXPECT_EQ(Send(0, 1, bytes), OutsidePort::Sent::kQueueFull);
  EXPECT_EQ(Send(0, 1, bytes, Ecn::kNotCapable, 48), OutsidePort::Sent::kYes) << "each priority has its own";
  ExpectNothingDisappeared();
  EXPECT_EQ(got_[1].size(), 5u);
}

TEST_F(OutsidePortTest, SwitchesMarkFramesThatSayTheyMayBeMarked) {
  options_.switches.ecn.kmin = 1;
  options_.switches.ecn.kmax = 2;
  options_.switches.ecn.pmax = 1;
  Build(2);
  ASSERT_EQ(Send(0, 1, "capable", Ecn::kCapable0), OutsidePort::Sent::kYes);
  ASSERT_EQ(Send(0, 1, "not"), OutsidePort::Sent::kYes);
  ExpectNothingDisappeared();
  ASSERT_EQ(got_[1].size(), 2u);
  EXPECT_TRUE(got_[1][0].marked);
  EXPECT_FALSE(got_[1][1].marked);
}

TEST_F(OutsidePortTest, DamageIsReported) {
  LossOptions loss;
  loss.corrupt = 1;
  Build(2, 1 << 20, loss);
  ASSERT_EQ(Send(0, 1, "x"), OutsidePort::Sent::kYes);
  ExpectNothingDisappeared();
  ASSERT_EQ(got_[1].size(), 1u);
  EXPECT_TRUE(got_[1][0].corrupt);
}

TEST_F(OutsidePortTest, IncastOfALosslessPriorityPausesHostsAndDropsNothing) {
  options_.switches.buffer.bytes = 256 << 10;
  Build(4);
  const std::string bytes(4000, 'x');
  for (int i = 0; i < 50; ++i) {
    for (uint32_t from = 1; from < 4; ++from) ASSERT_EQ(Send(from, 0, bytes), OutsidePort::Sent::kYes);
  }
  ExpectNothingDisappeared();
  EXPECT_EQ(got_[0].size(), 150u);
  uint64_t pauses = 0;
  for (uint32_t i = 1; i < 4; ++i) pauses += fabric_->interface_at(i).counters().priorities[0].pauses_received;
  EXPECT_GT(pauses, 0u);
}

TEST_F(OutsidePortTest, AnInterfaceHasOnePlug) {
  Build(2);
  EXPECT_TRUE(absl::IsAlreadyExists(fabric_->interface_at(0).OpenOutside(1, [](const ArrivedFrame&) {}).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(fabric_->Open(loop_, *Address::Parse("10.0.0.1"), {}).status()));
  ports_[0].reset();
  EXPECT_TRUE(fabric_->Open(loop_, *Address::Parse("10.0.0.1"), {}).ok());
}

TEST_F(OutsidePortTest, BytesThatComeToANicAndPacketsThatComeToAHostOutsideFindNobody) {
  Build(2);
  ports_[0].reset();
  verbs::soft::PortCallbacks callbacks;
  int packets = 0;
  callbacks.on_packets = [&](absl::Span<const verbs::soft::Packet>) { ++packets; };
  callbacks.on_ready = [] {};
  auto nic = *fabric_->Open(loop_, *Address::Parse("10.0.0.1"), callbacks);
  ASSERT_EQ(Send(1, 0, "bytes"), OutsidePort::Sent::kYes);
  verbs::soft::Packet packet;
  packet.peer = *Address::Parse("10.0.0.2");
  ASSERT_EQ(nic->Send(absl::MakeConstSpan(&packet, 1)), 1u);
  ExpectNothingDisappeared();
  EXPECT_EQ(packets, 0);
  EXPECT_TRUE(got_[1].empty());
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(fabric_->interface_at(i).counters().drops[static_cast<size_t>(DropReason::kNobody)], 1u);
  }
}

}  // namespace
}  // namespace tokamak::sim
