// Marks of the network, and the notifications that answer them.
#include <vector>

#include "gmock/gmock.h"
#include "tests/verbs/soft/accounted.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::IsEmpty;
using Op = PacketOpcode;

class NotificationTest : public OneNic {};

TEST_F(NotificationTest, ANotificationIsCountedAndAnswersNothing) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 2 * kMtu));
  EXPECT_EQ(TakeSent().size(), 2u);
  Arrive({FromPeer(Op::kCongestionNotification, 0)});
  EXPECT_THAT(TakeSent(), IsEmpty());
  EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_EQ(counters().notifications_received, 1u);
  EXPECT_EQ(Accounted(counters()), counters().packets_received);
  Arrive({Ack(1)});
  EXPECT_EQ(Poll().size(), 1u);
}

TEST_F(NotificationTest, ANotificationForAQueuePairInErrorIsCountedToo) {
  Open();
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kError).ok());
  Arrive({FromPeer(Op::kCongestionNotification, 0)});
  EXPECT_EQ(counters().notifications_received, 1u);
  EXPECT_EQ(Accounted(counters()), counters().packets_received);
}

TEST_F(NotificationTest, MarksAreCounted) {
  Open();
  Packet packet = Request(Op::kSendOnly, 0, Bytes(5, 1));
  packet.ecn = Ecn::kCapable0;
  Arrive({packet});
  EXPECT_EQ(counters().marks_received, 0u);
  packet.ecn = Ecn::kMarked;
  Arrive({packet});
  EXPECT_EQ(counters().marks_received, 1u);
}

class MarkTest : public NotificationTest {
 protected:
  Packet Marked(uint32_t index) {
    Packet packet = Request(Op::kSendOnly, index, payload_);
    packet.ecn = Ecn::kMarked;
    packet.ack_request = false;
    return packet;
  }
  void SetUp() override {
    Open();
    for (uint64_t i = 0; i < 20; ++i) PostReceive(i, Piece(0, 100));
  }

  const std::vector<uint8_t> payload_ = Bytes(5, 1);
};

TEST_F(MarkTest, AMarkIsAnsweredByANotificationOfItsOwnClass) {
  Arrive({Marked(0)});
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.opcode, Op::kCongestionNotification);
  EXPECT_EQ(sent[0].packet.destination, kPeerNumber);
  EXPECT_EQ(sent[0].packet.peer, peer_);
  EXPECT_EQ(sent[0].packet.dscp, kNotificationDscp);
  EXPECT_EQ(sent[0].packet.psn, 0u);
  EXPECT_EQ(counters().marks_received, 1u);
  EXPECT_EQ(counters().notifications_sent, 1u);
}

TEST_F(MarkTest, AFlowIsNotifiedAtMostOnceInAnInterval) {
  uint32_t index = 0;
  for (int i = 0; i < 10; ++i) {
    Arrive({Marked(index), Marked(index + 1)});
    index += 2;
    Run(base::Microseconds(10));
  }
  EXPECT_EQ(fabric_.sent.size(), 2u);
  EXPECT_EQ(fabric_.sent[1].time - fabric_.sent[0].time, base::Microseconds(50));
  EXPECT_EQ(counters().marks_received, 20u);
}

TEST_F(MarkTest, AMarkedAcknowledgementIsNotAnswered) {
  Post(Opcode::kSend, 1, Piece(0, 1));
  TakeSent();
  Packet ack = Ack(0);
  ack.ecn = Ecn::kMarked;
  Arrive({ack});
  EXPECT_THAT(TakeSent(), IsEmpty());
  EXPECT_EQ(counters().marks_received, 1u);
}

// Or two NICs could go on telling each other for ever.
TEST_F(MarkTest, ANotificationIsNotAnsweredByAnother) {
  Packet packet = FromPeer(Op::kCongestionNotification, 0);
  packet.ecn = Ecn::kMarked;
  Arrive({packet});
  EXPECT_THAT(TakeSent(), IsEmpty());
}

TEST_F(MarkTest, APortThatIsBusyWithDataStillTakesNotifications) {
  fabric_.room = 0;
  fabric_.says_room = true;
  fabric_.notification_room = SIZE_MAX;
  Post(Opcode::kSend, 1, Piece(0, 1));
  EXPECT_THAT(TakeSent(), IsEmpty());
  Arrive({Marked(0)});
  EXPECT_THAT(Opcodes(TakeSent()), testing::ElementsAre(Op::kCongestionNotification));
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_THAT(Opcodes(TakeSent()), testing::ElementsAre(Op::kSendOnly));
}

TEST_F(MarkTest, ANotificationThatThePortRefusesLeavesWhenItIsReady) {
  fabric_.room = 0;
  Arrive({Marked(0)});
  EXPECT_THAT(TakeSent(), IsEmpty());
  EXPECT_EQ(counters().notifications_sent, 0u);
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_THAT(Opcodes(TakeSent()), testing::ElementsAre(Op::kCongestionNotification));
  EXPECT_EQ(counters().notifications_sent, 1u);
}

TEST_F(MarkTest, AFailedQueuePairNotifiesNobody) {
  fabric_.room = 0;
  Arrive({Marked(0)});
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kError).ok());
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_THAT(TakeSent(), IsEmpty());
}

}  // namespace
}  // namespace tokamak::verbs::soft
