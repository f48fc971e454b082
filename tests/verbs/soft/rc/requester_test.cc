// A requester's packets on the wire, and its reaction to answers.
#include "lib/verbs/soft/rc/requester.h"

#include "gmock/gmock.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Op = PacketOpcode;
using Status = CompletionStatus;

class RequesterTest : public OneNic {};

TEST_F(RequesterTest, AMessageIsCutAtThePathMtuAndItsPsnsWrap) {
  Open();
  Post(Opcode::kSend, 1, Piece(10, 2 * kMtu + 5));
  const auto sent = TakeSent();
  EXPECT_THAT(Opcodes(sent), ElementsAre(Op::kSendFirst, Op::kSendMiddle, Op::kSendLast));
  EXPECT_THAT(Psns(sent), ElementsAre(0xfffffeu, 0xffffffu, 0u));
  std::string whole;
  for (const Sent& s : sent) {
    EXPECT_EQ(s.packet.destination, kPeerNumber);
    EXPECT_EQ(s.packet.peer, peer_);
    whole += s.payload;
  }
  EXPECT_EQ(whole, std::string(memory_.begin() + 10, memory_.begin() + 10 + 2 * kMtu + 5));
  EXPECT_FALSE(sent[0].packet.ack_request);
  EXPECT_TRUE(sent[2].packet.ack_request);
}

TEST_F(RequesterTest, AWriteNamesItsTargetInItsFirstPacketOnly) {
  Open();
  Post(Opcode::kWriteWithImm, 1, Piece(0, kMtu + 1));
  const auto sent = TakeSent();
  ASSERT_THAT(Opcodes(sent), ElementsAre(Op::kWriteFirst, Op::kWriteLastWithImm));
  EXPECT_EQ(sent[0].packet.remote_address, 0x10000u);
  EXPECT_EQ(sent[0].packet.rkey, 0x77u);
  EXPECT_EQ(sent[0].packet.dma_length, kMtu + 1);
  EXPECT_EQ(sent[1].packet.immediate, 0x11223344u);
}

TEST_F(RequesterTest, AnEmptyMessageIsOnePacket) {
  Open();
  Post(Opcode::kSendWithImm, 1, {});
  const auto sent = TakeSent();
  ASSERT_THAT(Opcodes(sent), ElementsAre(Op::kSendOnlyWithImm));
  EXPECT_EQ(sent[0].payload, "");
}

TEST_F(RequesterTest, OneAckCompletesAllMessagesUpToIt) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1));
  Post(Opcode::kWrite, 2, Piece(0, 3 * kMtu));
  Post(Opcode::kSend, 3, Piece(0, 1));
  TakeSent();
  EXPECT_THAT(Poll(), IsEmpty());
  Arrive({Ack(3)});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess), Pair(2, Status::kSuccess)));
  Arrive({Ack(4)});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(3, Status::kSuccess)));
}

TEST_F(RequesterTest, AnAckInsideAMessageCompletesNothing) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 3 * kMtu));
  TakeSent();
  Arrive({Ack(1)});
  EXPECT_THAT(Poll(), IsEmpty());
}

TEST_F(RequesterTest, AnUnsignaledSuccessIsSilent) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1), SendFlags{});
  Post(Opcode::kSend, 2, Piece(0, 1));
  TakeSent();
  Arrive({Ack(1)});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kSuccess)));
}

TEST_F(RequesterTest, AnAckOfUnsentPacketsIsDroppedAndCounted) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1));
  TakeSent();
  Arrive({Ack(1), Ack(1000), Ack(0x7fffff)});
  EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_EQ(counters().answers_bad, 3u);
}

TEST_F(RequesterTest, ALateAckIsDroppedAndCounted) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1));
  Post(Opcode::kSend, 2, Piece(0, 1));
  TakeSent();
  Arrive({Ack(1), Ack(0), Ack(0, kSequenceNak), Ack(1)});
  EXPECT_EQ(Poll().size(), 2u);
  EXPECT_EQ(counters().answers_stale + counters().answers_bad, 3u);
  EXPECT_THAT(TakeSent(), IsEmpty());
}

TEST_F(RequesterTest, ARefusalByThePeerEndsTheQueuePair) {
  const std::pair<uint8_t, Status> cases[] = {{kInvalidRequestNak, Status::kRemoteInvalidRequest},
                                              {kRemoteAccessNak, Status::kRemoteAccess},
                                              {kRemoteOperationNak, Status::kRemoteOperation}};
  Open();
  for (const auto& [syndrome, status] : cases) {
    queue_pair_ = MakeQueuePair();
    Walk(*queue_pair_);
    Post(Opcode::kSend, 1, Piece(0, 1));
    Post(Opcode::kSend, 2, Piece(0, 1));
    Post(Opcode::kSend, 3, Piece(0, 1), SendFlags{});
    PostReceive(4, Piece(0, 1));
    TakeSent();
    Arrive({Ack(1, syndrome)});
    EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess), Pair(2, status), Pair(3, Status::kFlushed),
                                              Pair(4, Status::kFlushed)));
    EXPECT_EQ(queue_pair_->state(), QueuePairState::kError);
    EXPECT_THAT(TakeSent(), IsEmpty());
  }
}

TEST_F(RequesterTest, AReadAsksForOneRangeAndTakesItsAnswer) {
  Open();
  Post(Opcode::kRead, 1, Piece(0, 2 * kMtu + 1));
  const auto sent = TakeSent();
  ASSERT_THAT(Opcodes(sent), ElementsAre(Op::kReadRequest));
  EXPECT_EQ(sent[0].packet.dma_length, 2 * kMtu + 1);
  const auto bytes = Bytes(2 * kMtu + 1, 9);
  const auto part = absl::MakeConstSpan(bytes);
  Arrive({Answer(Op::kReadResponseFirst, 0, part.subspan(0, kMtu)),
          Answer(Op::kReadResponseMiddle, 1, part.subspan(kMtu, kMtu))});
  EXPECT_THAT(Poll(), IsEmpty());
  Arrive({Answer(Op::kReadResponseLast, 2, part.subspan(2 * kMtu))});
  const auto done = Poll();
  ASSERT_THAT(Outcomes(done), ElementsAre(Pair(1, Status::kSuccess)));
  EXPECT_EQ(done[0].byte_count, 2 * kMtu + 1);
  EXPECT_TRUE(MemoryHolds(0, bytes));
}

TEST_F(RequesterTest, AReadTakesAsManyPsnsAsItsAnswerHasPackets) {
  Open();
  Post(Opcode::kRead, 1, Piece(0, 3 * kMtu));
  Post(Opcode::kSend, 2, Piece(0, 1));
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(0xfffffeu, 1u));
}

TEST_F(RequesterTest, AnAnswerAcknowledgesAllBeforeItsRequest) {
  Open();
  Post(Opcode::kWrite, 1, Piece(0, 1));
  Post(Opcode::kSend, 2, Piece(0, kMtu + 1));
  Post(Opcode::kRead, 3, Piece(0, 4));
  TakeSent();
  Arrive({Answer(Op::kReadResponseOnly, 3, Bytes(4, 1))});
  EXPECT_THAT(Outcomes(Poll()),
              ElementsAre(Pair(1, Status::kSuccess), Pair(2, Status::kSuccess), Pair(3, Status::kSuccess)));
}

TEST_F(RequesterTest, AnAckBehindAReadDoesNotCompleteIt) {
  Open();
  Post(Opcode::kRead, 1, Piece(0, 4));
  Post(Opcode::kSend, 2, Piece(0, 1));
  TakeSent();
  Arrive({Ack(1)});
  EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_EQ(counters().responses_lost, 1u);
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kReadRequest, Op::kSendOnly)) << "both again";
}

TEST_F(RequesterTest, NoMoreReadsAreOutstandingThanThePeerServes) {
  Open();
  for (uint64_t i = 0; i < 4; ++i) Post(i % 2 == 0 ? Opcode::kRead : Opcode::kFetchAdd, i, Piece(i * 8, 8));
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kReadRequest, Op::kFetchAdd));
  Arrive({Answer(Op::kReadResponseOnly, 0, Bytes(8, 1))});
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kReadRequest));
}

TEST_F(RequesterTest, ALargeReadGoesInPiecesThatFitThePortsWindow) {
  fabric_.window = 64 * kMtu;
  Open();
  Post(Opcode::kRead, 1, Piece(0, 100 * kMtu));
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].packet.dma_length, 16 * kMtu);
  EXPECT_EQ(sent[1].packet.remote_address, sent[0].packet.remote_address + 16 * kMtu);
  EXPECT_EQ(sent[1].packet.psn, (sent[0].packet.psn + 16) & kPsnMask);
}

TEST_F(RequesterTest, AFenceWaitsForReadsAndAtomicsBeforeIt) {
  Open();
  Post(Opcode::kRead, 1, Piece(0, 4));
  Post(Opcode::kSend, 2, Piece(0, 1), kSignaled | kFence);
  Post(Opcode::kSend, 3, Piece(0, 1));
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kReadRequest));
  Arrive({Answer(Op::kReadResponseOnly, 0, Bytes(4, 1))});
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kSendOnly, Op::kSendOnly));
}

TEST_F(RequesterTest, AnAtomicReturnsTheOldValue) {
  Open();
  Post(Opcode::kCompareSwap, 1, Piece(16, 8));
  const auto sent = TakeSent();
  ASSERT_THAT(Opcodes(sent), ElementsAre(Op::kCompareSwap));
  EXPECT_EQ(sent[0].packet.compare, 5u);
  EXPECT_EQ(sent[0].packet.swap_or_add, 6u);
  Packet answer = Answer(Op::kAtomicAcknowledge, 0);
  answer.original = 0x0102030405060708;
  Arrive({answer});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
  EXPECT_EQ(std::memcmp(memory_.data() + 16, &answer.original, 8), 0);
}

TEST_F(RequesterTest, AnAnswerOfAnotherLengthIsABadResponse) {
  Open();
  Post(Opcode::kRead, 1, Piece(0, 100));
  TakeSent();
  Arrive({Answer(Op::kReadResponseOnly, 0, Bytes(101, 1))});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kBadResponse)));
}

TEST_F(RequesterTest, DataForASendIsABadResponse) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1));
  TakeSent();
  Arrive({Answer(Op::kReadResponseOnly, 0, Bytes(1, 1))});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kBadResponse)));
}

TEST_F(RequesterTest, ABadLocalKeyFailsItsRequestAfterEarlierOnes) {
  Open();
  Sge bad = Piece(0, 100);
  ++bad.lkey;
  Post(Opcode::kSend, 1, Piece(0, 1));
  Post(Opcode::kSend, 2, bad);
  Post(Opcode::kSend, 3, Piece(0, 1));
  EXPECT_EQ(TakeSent().size(), 1u);
  EXPECT_THAT(Poll(), IsEmpty());
  Arrive({Ack(0)});
  EXPECT_THAT(Outcomes(Poll()),
              ElementsAre(Pair(1, Status::kSuccess), Pair(2, Status::kLocalProtection), Pair(3, Status::kFlushed)));
}

TEST_F(RequesterTest, InlineBytesAreThoseOfTheCall) {
  Open();
  const std::string before(memory_.begin(), memory_.begin() + 200);
  Post(Opcode::kSend, 1, {memory_.data(), 200, 0}, kSignaled | kInline);
  std::memset(memory_.data(), 0, 200);
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, before);
}

TEST_F(RequesterTest, ASolicitedMessageSaysSoInItsLastPacket) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, kMtu + 1), kSignaled | kSolicited);
  const auto sent = TakeSent();
  EXPECT_FALSE(sent[0].packet.solicited);
  EXPECT_TRUE(sent[1].packet.solicited);
}

}  // namespace
}  // namespace tokamak::verbs::soft
