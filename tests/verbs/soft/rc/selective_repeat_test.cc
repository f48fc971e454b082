// Selective repeat: a receiver keeps what comes after a gap, a sender repeats only what is missing.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "lib/verbs/soft/rc/held_packets.h"
#include "tests/verbs/soft/accounted.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Op = PacketOpcode;
using Status = CompletionStatus;

TEST(HeldPacketsTest, KeepsCopiesWithinItsBound) {
  HeldPackets held;
  std::vector<uint8_t> payload = {1, 2, 3};
  Packet packet;
  packet.slices = 2;
  packet.payload[0] = {payload.data(), 1};
  packet.payload[1] = {payload.data() + 1, 2};
  EXPECT_FALSE(held.Put(1000, 1001 + kHeldPackets, packet)) << "too far ahead";
  EXPECT_TRUE(held.Put(1000, 1000 + kHeldPackets, packet));
  EXPECT_TRUE(held.Put(1000, 1001, packet));
  EXPECT_FALSE(held.Put(1000, 1001, packet)) << "it is here";
  payload = {9, 9, 9};
  ASSERT_NE(held.Find(1001), nullptr);
  EXPECT_EQ(held.Find(1001)->payload_length(), 3u);
  EXPECT_EQ(held.Find(1001)->payload[1].data[1], 3);
  EXPECT_EQ(held.Find(1002), nullptr);
  EXPECT_THAT(held.Map(1000), ElementsAre(1u, uint64_t{1} << 63));
  held.Drop(1001);
  EXPECT_THAT(held.Map(1000), ElementsAre(0u, uint64_t{1} << 63));
  EXPECT_EQ(held.Clear(), 1u);
  EXPECT_TRUE(held.empty());
}

class SelectiveRepeatTest : public OneNic {
 protected:
  SelectiveRepeatTest() {
    device_options_.selective_repeat = true;
    device_options_.window_packets = 200;
  }
  void ExpectAccounted() { EXPECT_EQ(Accounted(counters()), counters().packets_received); }
  Packet Send(uint32_t index) {
    payloads_.push_back(Bytes(10, static_cast<uint8_t>(index)));
    return Request(Op::kSendOnly, index, payloads_.back());
  }
  Packet Nak(uint32_t index, uint64_t map) const {
    Packet packet = Answer(Op::kSelectiveNak, index);
    packet.syndrome = kSequenceNak;
    packet.swap_or_add = map;
    return packet;
  }

  std::deque<std::vector<uint8_t>> payloads_;
};

TEST_F(SelectiveRepeatTest, PacketsAfterAGapAreKeptAndTheGapIsReported) {
  Open();
  for (uint64_t i = 0; i < 8; ++i) PostReceive(i, Piece(100 * i, 100));
  Arrive({Send(0), Send(2), Send(3), Send(5)});
  auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u) << "once for a batch";
  EXPECT_EQ(sent[0].packet.opcode, Op::kSelectiveNak);
  EXPECT_EQ(sent[0].packet.syndrome, kSequenceNak);
  EXPECT_EQ(sent[0].packet.psn, (kFirstReceived + 1) & kPsnMask);
  EXPECT_EQ(sent[0].packet.swap_or_add, 0b1011u);
  EXPECT_EQ(counters().requests_held, 3u);
  ExpectAccounted();
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(0, Status::kSuccess)));

  Arrive({Send(1)});
  sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.psn, (kFirstReceived + 4) & kPsnMask) << "the next that is missing";
  EXPECT_EQ(sent[0].packet.swap_or_add, 1u);
  EXPECT_EQ(Poll().size(), 3u);

  Arrive({Send(4)});
  sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.opcode, Op::kAcknowledge);
  EXPECT_EQ(sent[0].packet.psn, (kFirstReceived + 5) & kPsnMask);
  EXPECT_EQ(counters().requests_held, 0u);
  EXPECT_EQ(counters().requests_executed, 6u);
  for (uint32_t i = 0; i < 6; ++i) EXPECT_TRUE(MemoryHolds(100 * i, Bytes(10, static_cast<uint8_t>(i)))) << i;
  ExpectAccounted();
}

TEST_F(SelectiveRepeatTest, AKeptPacketThatFindsNoReceiveIsAskedForAgain) {
  Open();
  PostReceive(0, Piece(0, 100));
  Arrive({Send(1)});
  TakeSent();
  Arrive({Send(0)});
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(IsNotReady(sent[0].packet.syndrome));
  EXPECT_EQ(sent[0].packet.psn, (kFirstReceived + 1) & kPsnMask);
  ExpectAccounted();
  PostReceive(1, Piece(100, 100));
  Arrive({Send(1)});
  EXPECT_EQ(Poll().size(), 2u);
}

TEST_F(SelectiveRepeatTest, AQueuePairInErrorKeepsNothing) {
  Open();
  Arrive({Send(1), Send(2)});
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kError).ok());
  EXPECT_EQ(counters().requests_held, 0u);
  ExpectAccounted();
}

TEST_F(SelectiveRepeatTest, OnlyMissingPacketsAreSentAgain) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 10 * kMtu));
  EXPECT_EQ(TakeSent().size(), 10u);
  Arrive({Nak(2, 0b1011)});  // 2 and 5 are missing; 7 to 9 may be on their way
  const auto sent = TakeSent();
  EXPECT_THAT(Psns(sent), ElementsAre(0u, 3u));
  EXPECT_THAT(Opcodes(sent), ElementsAre(Op::kSendMiddle, Op::kSendMiddle));
  EXPECT_EQ(sent[1].payload, std::string(memory_.begin() + 5 * kMtu, memory_.begin() + 6 * kMtu));
  Arrive({Nak(2, 0b11011), Nak(2, 0b111011)});
  EXPECT_THAT(TakeSent(), IsEmpty()) << "no packet is repeated twice";
  Arrive({Ack(9)});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
  EXPECT_EQ(counters().packets_retransmitted, 2u);
}

TEST_F(SelectiveRepeatTest, ALostRepeatIsLeftToTheTimeOut) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 4 * kMtu));
  TakeSent();
  Arrive({Nak(1, 0b11)});
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(0xffffffu));
  Run(timeout());
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(0xffffffu, 0u, 1u));
  Arrive({Ack(3)});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
}

TEST_F(SelectiveRepeatTest, ARequesterWithoutSelectiveRepeatGoesBack) {
  device_options_.selective_repeat = false;
  Open();
  Post(Opcode::kSend, 1, Piece(0, 4 * kMtu));
  TakeSent();
  Arrive({Nak(1, 0b01)});
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(0xffffffu, 0u, 1u));
}

TEST_F(SelectiveRepeatTest, ARequesterWithOutstandingReadsGoesBack) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 2 * kMtu));
  Post(Opcode::kRead, 2, Piece(2 * kMtu, kMtu));
  EXPECT_EQ(TakeSent().size(), 3u);
  Arrive({Nak(0, 0b1)});
  EXPECT_EQ(TakeSent().size(), 3u);
}

}  // namespace
}  // namespace tokamak::verbs::soft
