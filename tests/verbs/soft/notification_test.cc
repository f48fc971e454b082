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

TEST_F(NotificationTest, OneThatMeetsAQueuePairInErrorIsCountedToo) {
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

}  // namespace
}  // namespace tokamak::verbs::soft
