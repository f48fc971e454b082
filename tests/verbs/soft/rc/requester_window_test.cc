// When a requester may send: within its windows, where the port takes it, in turn with others.
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "lib/verbs/soft/rc/requester.h"
#include "lib/verbs/soft/state/outbox.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Op = PacketOpcode;
using Status = CompletionStatus;

class RequesterWindowTest : public OneNic {};

TEST_F(RequesterWindowTest, NoMorePacketsAreUnacknowledgedThanTheWindowHolds) {
  device_options_.window_packets = 8;
  Open();
  Post(Opcode::kSend, 1, Piece(0, 100 * kMtu));
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 8u);
  EXPECT_TRUE(sent[7].packet.ack_request) << "or nothing would ever open the window again";
  Arrive({Ack(1)});
  EXPECT_EQ(TakeSent().size(), 2u);
}

// The next batch may go to packets of others.
TEST_F(RequesterWindowTest, AQueuePairThatFillsTheBatchAsksForAnAcknowledgement) {
  device_options_.window_packets = 2 * Outbox::kCapacity;
  Open();
  auto other = MakeQueuePair();
  Walk(*other);
  Post(Opcode::kSend, 1, Piece(0, 1));
  std::swap(queue_pair_, other);
  Post(Opcode::kSend, 2, Piece(0, 2 * Outbox::kCapacity * kMtu));
  std::swap(queue_pair_, other);
  const auto sent = TakeSent();
  ASSERT_GT(sent.size(), Outbox::kCapacity);
  EXPECT_TRUE(sent[Outbox::kCapacity - 1].packet.ack_request);
  EXPECT_FALSE(sent[Outbox::kCapacity - 2].packet.ack_request);
}

TEST_F(RequesterWindowTest, AnAcknowledgementMayBeAskedForAtAnyInterval) {
  device_options_.ack_every = 3;
  Open();
  Post(Opcode::kSend, 1, Piece(0, 8 * kMtu));
  std::vector<bool> asked;
  for (const Sent& sent : TakeSent()) asked.push_back(sent.packet.ack_request);
  EXPECT_THAT(asked, ElementsAre(false, false, true, false, false, true, false, true));
}

// A share of 32 packets, and batches of 16.
TEST_F(RequesterWindowTest, AGivenIntervalDoesNotDependOnBatches) {
  device_options_.window_packets = 512;
  device_options_.batch_packets = 16;
  device_options_.ack_every = 100;
  Open();
  Post(Opcode::kSend, 1, Piece(0, 99 * kMtu));
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 99u);
  for (size_t i = 0; i < 98; ++i) EXPECT_FALSE(sent[i].packet.ack_request) << i;
  EXPECT_TRUE(sent[98].packet.ack_request);
}

TEST_F(RequesterWindowTest, ABatchHasTheGivenNumberOfPackets) {
  device_options_.batch_packets = 4;
  Open();
  Post(Opcode::kSend, 1, Piece(0, 12 * kMtu));
  EXPECT_EQ(TakeSent().size(), 12u);
  EXPECT_EQ(fabric_.batches, 3);
}

TEST_F(RequesterWindowTest, OptionsBeyondTheirBoundsAreRefused) {
  DeviceOptions options;
  options.batch_packets = 0;
  EXPECT_EQ(OpenSoftDevice(nic_loop_, fabric_, trace_, options).status().code(), absl::StatusCode::kInvalidArgument);
  options = {};
  options.dscp = 64;
  EXPECT_EQ(OpenSoftDevice(nic_loop_, fabric_, trace_, options).status().code(), absl::StatusCode::kInvalidArgument);
}

class RoomTest : public RequesterWindowTest {
 protected:
  RoomTest() {
    fabric_.says_room = true;
    fabric_.room = 1;
  }
  // The port takes one more.
  std::vector<Sent> Next() {
    fabric_.room = 1;
    fabric_.Ready();
    return TakeSent();
  }
};

TEST_F(RoomTest, NoMorePacketsAreMadeThanThePortTakes) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 3 * kMtu));
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(kFirstSent));
  EXPECT_EQ(counters().packets_sent, 1u);
  EXPECT_EQ(device_->counters().port_busy, 0u);
  EXPECT_THAT(Psns(Next()), ElementsAre(kFirstSent + 1));
  EXPECT_THAT(Psns(Next()), ElementsAre(0u));
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(RoomTest, AfterALossNoEarlierPacketLeaves) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 40 * kMtu));
  for (int i = 0; i < 10; ++i) Next();
  Arrive({Ack(2, kSequenceNak)});
  EXPECT_THAT(Psns(Next()), ElementsAre(0u)) << "the very next packet is the one that was missed";
}

TEST_F(RoomTest, ThePortsRoomIsNoReasonToAskForAcknowledgements) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 10 * kMtu));
  int asked = 0;
  for (int i = 0; i < 10; ++i) {
    for (const Sent& sent : Next()) asked += sent.packet.ack_request ? 1 : 0;
  }
  EXPECT_EQ(asked, 1);
}

// As where a thousand queue pairs take turns.
TEST_F(RoomTest, WithRareTurnsAnAcknowledgementIsAskedForWellBeforeTheTimeOut) {
  Open();
  Run(base::Seconds(1));  // does not count: nothing waits
  Post(Opcode::kSend, 1, Piece(0, 10 * kMtu));
  std::vector<bool> asked;
  for (const Sent& sent : TakeSent()) asked.push_back(sent.packet.ack_request);
  for (int i = 0; i < 5; ++i) {
    Run(reliability_.ack_timeout / 8);
    for (const Sent& sent : Next()) asked.push_back(sent.packet.ack_request);
  }
  EXPECT_THAT(asked, ElementsAre(false, false, true, false, true, false));
}

// One packet of data is on its way, the rest waits for the acknowledgement to go first.
TEST_F(RoomTest, AnAcknowledgementGoesBeforeTheDataOfAllQueuePairs) {
  Open();
  auto other = MakeQueuePair();
  Walk(*other);
  std::swap(queue_pair_, other);
  Post(Opcode::kSend, 1, Piece(0, 10 * kMtu));
  std::swap(queue_pair_, other);
  Post(Opcode::kSend, 2, Piece(0, 10 * kMtu));
  TakeSent();
  Next();
  const std::vector<uint8_t> payload = Bytes(5, 1);
  Arrive({To(Request(Op::kWriteOnly, 0, payload), Remote(0), region_->rkey(), 5)});
  EXPECT_THAT(Opcodes(Next()), ElementsAre(Op::kAcknowledge));
  EXPECT_THAT(Opcodes(Next()), ElementsAre(Op::kSendMiddle));
  Arrive({Request(Op::kSendOnly, 3, payload)});
  const auto nak = Next();
  ASSERT_EQ(nak.size(), 1u);
  EXPECT_EQ(nak[0].packet.syndrome, kSequenceNak);
}

// Else the READ's data would seem lost.
TEST_F(RoomTest, AnAcknowledgementDoesNotPassReadDataOfItsQueuePair) {
  Open();
  Post(Opcode::kSend, 2, Piece(0, 10 * kMtu));
  TakeSent();
  const std::vector<uint8_t> payload = Bytes(5, 1);
  Arrive({To(Request(Op::kReadRequest, 0), Remote(0), region_->rkey(), 2 * kMtu),
          To(Request(Op::kWriteOnly, 2, payload), Remote(0), region_->rkey(), 5)});
  std::vector<Op> answers;
  for (int i = 0; i < 10; ++i) {
    for (const Sent& sent : Next()) {
      if (sent.packet.opcode != Op::kSendMiddle) answers.push_back(sent.packet.opcode);
    }
  }
  EXPECT_THAT(answers, ElementsAre(Op::kReadResponseFirst, Op::kReadResponseLast, Op::kAcknowledge));
}

TEST_F(RequesterWindowTest, ALostPacketNarrowsTheWindow) {
  device_options_.congestion = CongestionControl::kAdditive;
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1000 * kMtu));
  EXPECT_EQ(TakeSent().size(), 32u);
  Arrive({Ack(31)});
  EXPECT_EQ(TakeSent().size(), 64u) << "it doubles each round trip";
  Arrive({Ack(32, kSequenceNak)});
  EXPECT_EQ(TakeSent().size(), 32u);
}

TEST_F(RequesterWindowTest, AQueuePairThatIsResetBeginsWithTheFirstWindowAgain) {
  device_options_.congestion = CongestionControl::kAdditive;
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1000 * kMtu));
  TakeSent();
  Run(timeout());
  EXPECT_EQ(TakeSent().size(), 4u);
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kReset).ok());
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kInit).ok());
  Walk(*queue_pair_);
  Post(Opcode::kSend, 1, Piece(0, 1000 * kMtu));
  EXPECT_EQ(TakeSent().size(), 32u);
}

TEST_F(RequesterWindowTest, PacketsThatABusyPortRefusedLeaveWhenItIsReady) {
  Open();
  fabric_.room = 2;
  Post(Opcode::kSend, 1, Piece(0, 5 * kMtu));
  EXPECT_EQ(TakeSent().size(), 2u);
  Post(Opcode::kSend, 2, Piece(0, 1));
  EXPECT_THAT(TakeSent(), IsEmpty());
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(0u, 1u, 2u, 3u));
}

TEST_F(RequesterWindowTest, PacketsThatWaitForThePortAreNotSentOnceTheirQueuePairIsInError) {
  Open();
  fabric_.room = 2;
  Post(Opcode::kSend, 1, Piece(0, 5 * kMtu));
  TakeSent();
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kError).ok());
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_THAT(TakeSent(), IsEmpty());
  EXPECT_EQ(device_->counters().dropped_before_send, 3u);
}

TEST_F(RequesterWindowTest, PacketsThatWaitForThePortAreNotSentOnceTheirMemoryIsRevoked) {
  Open();
  fabric_.room = 2;
  Post(Opcode::kSend, 1, Piece(0, 5 * kMtu));
  TakeSent();
  region_.reset();
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_THAT(TakeSent(), IsEmpty());
  Run(timeout());
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kLocalProtection)));
}

// If the copy of a repeated packet waits for the port when the first one is acknowledged, the owner
// has its memory back.
TEST_F(RequesterWindowTest, CopiesThatWaitForThePortAreNotSentOnceTheyAreAcknowledged) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 2 * kMtu));
  Post(Opcode::kSend, 2, Piece(2 * kMtu, 1));
  EXPECT_EQ(TakeSent().size(), 3u);
  fabric_.room = 0;
  Run(timeout());
  ASSERT_EQ(counters().packets_retransmitted, 3u);
  Arrive({Ack(1)});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(0u));  // what is not acknowledged still goes
  EXPECT_EQ(device_->counters().dropped_before_send, 2u);
  Arrive({Ack(2)});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kSuccess)));
}

TEST_F(RequesterWindowTest, QueuePairsShareTheWireInTurn) {
  Open();
  auto other = MakeQueuePair();
  Walk(*other);
  Post(Opcode::kSend, 1, Piece(0, 60 * kMtu));
  std::swap(queue_pair_, other);
  Post(Opcode::kSend, 2, Piece(0, 1));
  std::swap(queue_pair_, other);
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 61u);
  size_t at = 0;
  while (sent[at].packet.opcode != Op::kSendOnly) ++at;
  EXPECT_LE(at, 32u);
}

}  // namespace
}  // namespace tokamak::verbs::soft
