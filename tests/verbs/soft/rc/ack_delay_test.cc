// Acknowledgements that wait for something to go with (DeviceOptions::ack_delay).
#include <vector>

#include "gmock/gmock.h"
#include "lib/verbs/soft/state/nic_state.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using base::Microseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Op = PacketOpcode;

class AckDelayTest : public OneNic {
 protected:
  void SetUp() override {
    device_options_.ack_delay = kDelay;
    Open();
    for (uint64_t i = 0; i < 40; ++i) PostReceive(i, Piece(0, 1000));
  }

  static constexpr base::Duration kDelay = Microseconds(100);
  const std::vector<uint8_t> bytes_ = Bytes(50, 1);
};

TEST_F(AckDelayTest, AnAcknowledgementWithoutCompanyLeavesAfterTheDelay) {
  Arrive({Request(Op::kSendOnly, 0)});
  EXPECT_EQ(Poll().size(), 1u) << "the message itself does not wait";
  Run(kDelay - Microseconds(1));
  EXPECT_THAT(TakeSent(), IsEmpty());
  Run(Microseconds(1));
  const auto sent = TakeSent();
  ASSERT_THAT(Opcodes(sent), ElementsAre(Op::kAcknowledge));
  EXPECT_EQ(sent[0].packet.psn, kFirstReceived);
  Run(kDelay * 3);
  EXPECT_THAT(TakeSent(), IsEmpty());
}

TEST_F(AckDelayTest, AnAcknowledgementGoesInOneBatchWithTheReply) {
  Arrive({Request(Op::kSendOnly, 0)});
  Run(Microseconds(50));
  const int batches = fabric_.batches;
  Post(Opcode::kSend, 1, Piece(0, 10));
  const auto sent = TakeSent();
  EXPECT_THAT(Opcodes(sent), ElementsAre(Op::kAcknowledge, Op::kSendOnly));
  EXPECT_EQ(fabric_.batches, batches + 1);
  Run(kDelay * 3);
  EXPECT_THAT(TakeSent(), IsEmpty());
}

TEST_F(AckDelayTest, OnePacketAcknowledgesAllThatWait) {
  for (uint32_t i = 0; i < 5; ++i) Arrive({Request(Op::kSendOnly, i)});
  Run(kDelay);
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.psn, (kFirstReceived + 4) & kPsnMask);
}

TEST_F(AckDelayTest, ABoundedNumberWaits) {
  for (uint32_t i = 0; i + 1 < NicState::kPatientAcknowledgements; ++i) Arrive({Request(Op::kSendOnly, i)});
  EXPECT_THAT(TakeSent(), IsEmpty());
  Arrive({Request(Op::kSendOnly, NicState::kPatientAcknowledgements - 1)});
  EXPECT_EQ(TakeSent().size(), 1u);
}

TEST_F(AckDelayTest, OnlyTheAcknowledgementOfAOnePacketSendWaits) {
  Arrive({To(Request(Op::kWriteOnly, 0, bytes_), Remote(100), region_->rkey(), 50)});
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kAcknowledge));
  const auto packet = Bytes(kMtu, 2);
  Arrive({Request(Op::kSendFirst, 1, packet), Request(Op::kSendLast, 2, bytes_)});
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kAcknowledge));
  Arrive({To(Request(Op::kReadRequest, 3), Remote(0), region_->rkey(), 10)});
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kReadResponseOnly));
}

TEST_F(AckDelayTest, AGapIsReportedAtOnceAndAcknowledgesAllBeforeIt) {
  Arrive({Request(Op::kSendOnly, 0)});
  Arrive({Request(Op::kSendOnly, 2)});
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.syndrome, kSequenceNak);
  Run(kDelay * 2);
  EXPECT_THAT(TakeSent(), IsEmpty());
}

TEST_F(AckDelayTest, ARetransmissionIsAnsweredAtOnce) {
  Arrive({Request(Op::kSendOnly, 0)});
  Arrive({Request(Op::kSendOnly, 0)});
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kAcknowledge));
  EXPECT_EQ(Poll().size(), 1u);
}

TEST_F(AckDelayTest, AQueuePairThatEndsAcknowledgesFirst) {
  Arrive({Request(Op::kSendOnly, 0)});
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kError).ok());
  Run(kDelay * 2);
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kAcknowledge));
}

TEST_F(AckDelayTest, AQueuePairThatGoesAwayAcknowledgesFirst) {
  Arrive({Request(Op::kSendOnly, 0)});
  queue_pair_.reset();
  Run(kDelay * 2);
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kAcknowledge));
}

}  // namespace
}  // namespace tokamak::verbs::soft
