// Which packets ask for an acknowledgement, one by one, without a NIC.
#include "lib/verbs/soft/rc/ack_requests.h"

#include "gtest/gtest.h"

namespace tokamak::verbs::soft {
namespace {

class AckRequestsTest : public ::testing::Test {
 protected:
  // The next packet of a long message, in a window of 1000, with nothing scarce.
  AckRequests::Leaving Next() {
    AckRequests::Leaving packet;
    packet.sequence = sequence_++;
    packet.unacked = unacked_;
    packet.window = 1000;
    packet.now = packet.next = now_;
    packet.timeout = base::Milliseconds(4);
    return packet;
  }
  // Sends packets of that kind until one asks; returns how many.
  uint32_t SendUntilAsked() {
    for (uint32_t sent = 1; sent < 1000; ++sent) {
      if (asks_.Asks(Next())) return sent;
    }
    return 1000;
  }

  AckRequests asks_{0};
  uint64_t sequence_ = 100;
  uint64_t unacked_ = 100;
  base::Time now_;
};

TEST_F(AckRequestsTest, TheLastPacketOfAMessageAsks) {
  EXPECT_FALSE(asks_.Asks(Next()));
  AckRequests::Leaving last = Next();
  last.last_of_message = true;
  EXPECT_TRUE(asks_.Asks(last));
  EXPECT_TRUE(asks_.just_asked());
}

TEST_F(AckRequestsTest, InALongMessageEvery32ndAsks) {
  EXPECT_EQ(SendUntilAsked(), AckRequests::kMaxPacketsPerAck);
  EXPECT_EQ(SendUntilAsked(), AckRequests::kMaxPacketsPerAck);
}

TEST_F(AckRequestsTest, ASmallWindowIsAskedForInFourParts) {
  uint32_t asked = 0;
  for (int i = 0; i < 16; ++i) {
    AckRequests::Leaving packet = Next();
    packet.window = 16;
    asked += asks_.Asks(packet);
  }
  EXPECT_EQ(asked, AckRequests::kAcksPerWindow);
}

TEST_F(AckRequestsTest, ThePacketThatFillsTheWindowAsks) {
  for (uint32_t i = 1; i < 9; ++i) {
    AckRequests::Leaving packet = Next();
    packet.window = 40;
    EXPECT_FALSE(asks_.Asks(packet)) << i;
  }
  AckRequests::Leaving packet = Next();
  packet.window = 9;
  EXPECT_TRUE(asks_.Asks(packet));
}

TEST_F(AckRequestsTest, TheEndOfABatchAsksUnlessAnIntervalWasChosen) {
  AckRequests::Leaving packet = Next();
  packet.last_of_batch = true;
  EXPECT_TRUE(asks_.Asks(packet));
  AckRequests every8(8);
  EXPECT_FALSE(every8.Asks(packet));
  packet.room = false;
  EXPECT_TRUE(every8.Asks(packet)) << "no other may leave before an acknowledgement";
}

TEST_F(AckRequestsTest, WithScarceRoomOnePacketOnItsWayAsks) {
  const auto scarce = [this] {
    AckRequests::Leaving packet = Next();
    packet.scarce = true;
    return asks_.Asks(packet);
  };
  EXPECT_TRUE(scarce());
  EXPECT_FALSE(scarce()) << "the first one's answer will come";
  unacked_ = 101;
  EXPECT_TRUE(scarce()) << "it came";
}

TEST_F(AckRequestsTest, SentAgainWithScarceRoomAPacketAsksAgain) {
  AckRequests::Leaving packet = Next();
  packet.scarce = true;
  EXPECT_TRUE(asks_.Asks(packet));
  asks_.GoBack();
  packet.sequence = packet.unacked;
  EXPECT_TRUE(asks_.Asks(packet));
}

TEST_F(AckRequestsTest, PacketsThatLeaveSlowlyAskFourTimesInATimeout) {
  EXPECT_FALSE(asks_.Asks(Next()));
  now_ = now_ + base::Microseconds(999);
  EXPECT_FALSE(asks_.Asks(Next()));
  now_ = now_ + base::Microseconds(1);
  EXPECT_TRUE(asks_.Asks(Next()));
  AckRequests::Leaving packet = Next();
  packet.next = now_ + base::Milliseconds(1);
  EXPECT_TRUE(asks_.Asks(packet)) << "the next one leaves too late";
}

TEST_F(AckRequestsTest, AReadIsItsOwnQuestion) {
  for (uint32_t i = 1; i < AckRequests::kMaxPacketsPerAck; ++i) EXPECT_FALSE(asks_.Asks(Next()));
  asks_.AskedByAnswer();
  EXPECT_TRUE(asks_.just_asked());
  EXPECT_EQ(SendUntilAsked(), AckRequests::kMaxPacketsPerAck);
}

}  // namespace
}  // namespace tokamak::verbs::soft
