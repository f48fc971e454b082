// A responder's reaction to requests that come in order, late, twice or with gaps, and its answers.
#include "lib/verbs/soft/rc/responder.h"

#include "gmock/gmock.h"
#include "lib/verbs/time_codes.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Op = PacketOpcode;
using Status = CompletionStatus;

class ResponderTest : public OneNic {
 protected:
  Packet Read(uint32_t index, size_t offset, uint32_t length) {
    return To(Request(Op::kReadRequest, index), Remote(offset), region_->rkey(), length);
  }
  Packet Add(uint32_t index, size_t offset, uint64_t addend) {
    Packet packet = To(Request(Op::kFetchAdd, index), Remote(offset), region_->rkey(), 0);
    packet.swap_or_add = addend;
    return packet;
  }
  uint64_t Word(size_t offset) const {
    uint64_t word = 0;
    std::memcpy(&word, memory_.data() + offset, sizeof(word));
    return word;
  }
  static Packet WithoutAck(Packet packet) {
    packet.ack_request = false;
    return packet;
  }
};

TEST_F(ResponderTest, MessagesOfOneBatchAreAcknowledgedByOnePacket) {
  Open();
  const auto bytes = Bytes(kMtu, 1);
  PostReceive(1, Piece(0, 1000));
  PostReceive(2, Piece(1000, 1000));
  Arrive({Request(Op::kSendOnly, 0, bytes), WithoutAck(Request(Op::kSendFirst, 1, bytes)),
          Request(Op::kSendLast, 2, absl::MakeConstSpan(bytes).first(10))});
  const auto sent = TakeSent();
  ASSERT_THAT(Opcodes(sent), ElementsAre(Op::kAcknowledge));
  EXPECT_EQ(sent[0].packet.psn, 1u);  // 0xffffff, 0, 1
  EXPECT_EQ(sent[0].packet.syndrome, kAck);
  EXPECT_EQ(sent[0].packet.msn, 2u);
  const auto done = Poll();
  ASSERT_THAT(Outcomes(done), ElementsAre(Pair(1, Status::kSuccess), Pair(2, Status::kSuccess)));
  EXPECT_EQ(done[1].byte_count, kMtu + 10);
  EXPECT_TRUE(MemoryHolds(1000, bytes));
}

TEST_F(ResponderTest, AnAckIsSentOnlyWhereAskedFor) {
  Open();
  PostReceive(1, Piece(0, 1000));
  Arrive({WithoutAck(Request(Op::kSendOnly, 0))});
  EXPECT_THAT(TakeSent(), IsEmpty());
  EXPECT_EQ(Poll().size(), 1u);
}

TEST_F(ResponderTest, AGapIsReportedOnceUntilItIsFilled) {
  Open();
  for (uint64_t i = 0; i < 4; ++i) PostReceive(i, Piece(0, 10));
  Arrive({Request(Op::kSendOnly, 1), Request(Op::kSendOnly, 2)});
  auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.syndrome, kSequenceNak);
  EXPECT_EQ(sent[0].packet.psn, kFirstReceived);
  Arrive({Request(Op::kSendOnly, 3)});
  EXPECT_THAT(TakeSent(), IsEmpty());
  Arrive({Request(Op::kSendOnly, 0), Request(Op::kSendOnly, 1)});
  sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.psn, 0u);
  Arrive({Request(Op::kSendOnly, 3)});
  EXPECT_EQ(TakeSent()[0].packet.syndrome, kSequenceNak) << "a new gap";
  EXPECT_EQ(Poll().size(), 2u);
}

TEST_F(ResponderTest, ADuplicateIsAcknowledgedWithTheNewestPsnAndNotExecutedAgain) {
  Open();
  PostReceive(1, Piece(0, 10));
  PostReceive(2, Piece(0, 10));
  PostReceive(3, Piece(0, 10));
  Arrive({Request(Op::kSendOnly, 0), Request(Op::kSendOnly, 1)});
  TakeSent();
  Arrive({Request(Op::kSendOnly, 0)});
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.psn, 0u);
  EXPECT_EQ(Poll().size(), 2u);
  EXPECT_EQ(counters().requests_duplicate, 1u);
}

TEST_F(ResponderTest, ADuplicateWriteDoesNotTouchMemory) {
  Open();
  const auto bytes = Bytes(50, 1);
  const Packet write = To(Request(Op::kWriteOnly, 0, bytes), Remote(100), region_->rkey(), 50);
  Arrive({write});
  EXPECT_TRUE(MemoryHolds(100, bytes));
  std::memset(memory_.data() + 100, 0, 50);
  Arrive({write});
  EXPECT_EQ(memory_[101], 0);
}

TEST_F(ResponderTest, WithoutAReceiveThePeerIsToldToWait) {
  Open();
  Arrive({Request(Op::kSendOnly, 0), Request(Op::kSendOnly, 1)});
  auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.syndrome, kNotReadyNak | NotReadyCode(reliability_.rnr_delay));
  EXPECT_EQ(sent[0].packet.psn, kFirstReceived);
  Arrive({Request(Op::kSendOnly, 1)});
  EXPECT_THAT(TakeSent(), IsEmpty()) << "what follows it is no gap";
  PostReceive(1, Piece(0, 10));
  Arrive({Request(Op::kSendOnly, 0)});
  EXPECT_EQ(TakeSent()[0].packet.syndrome, kAck);
  EXPECT_EQ(Poll().size(), 1u);
}

TEST_F(ResponderTest, AWriteWithImmediateWaitsForAReceiveBeforeItsLastBytes) {
  Open();
  const auto bytes = Bytes(50, 1);
  const Packet write = To(Request(Op::kWriteOnlyWithImm, 0, bytes), Remote(100), region_->rkey(), 50);
  Arrive({write});
  EXPECT_TRUE(IsNotReady(TakeSent()[0].packet.syndrome));
  EXPECT_FALSE(MemoryHolds(100, bytes));
  PostReceive(1, {});
  Arrive({write});
  EXPECT_TRUE(MemoryHolds(100, bytes));
  EXPECT_EQ(Poll()[0].opcode, CompletionOpcode::kReceiveWriteWithImm);
}

TEST_F(ResponderTest, AReadIsAnsweredPacketByPacket) {
  Open();
  Arrive({Read(0, 10, 2 * kMtu + 7)});
  const auto sent = TakeSent();
  ASSERT_THAT(Opcodes(sent), ElementsAre(Op::kReadResponseFirst, Op::kReadResponseMiddle, Op::kReadResponseLast));
  EXPECT_THAT(Psns(sent), ElementsAre(0xffffffu, 0u, 1u));
  EXPECT_EQ(sent[0].packet.syndrome, kAck);
  EXPECT_EQ(sent[2].packet.msn, 1u);
  std::string whole;
  for (const Sent& s : sent) whole += s.payload;
  EXPECT_EQ(whole, std::string(memory_.begin() + 10, memory_.begin() + 10 + 2 * kMtu + 7));
}

TEST_F(ResponderTest, AnEmptyReadIsAnsweredByOnePacketWithoutLookingAtAKey) {
  Open();
  Arrive({To(Request(Op::kReadRequest, 0), 0, 0, 0)});
  const auto sent = TakeSent();
  ASSERT_THAT(Opcodes(sent), ElementsAre(Op::kReadResponseOnly));
  EXPECT_EQ(sent[0].payload, "");
}

TEST_F(ResponderTest, AReadsAnswerAcknowledgesAllBeforeIt) {
  Open();
  const auto bytes = Bytes(8, 1);
  Arrive({To(Request(Op::kWriteOnly, 0, bytes), Remote(0), region_->rkey(), 8), Read(1, 0, 8)});
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kReadResponseOnly));
}

TEST_F(ResponderTest, AnAckDoesNotOvertakeTheReadBeforeIt) {
  Open();
  fabric_.room = 0;
  PostReceive(1, Piece(5000, 10));
  Arrive({Read(0, 0, 2 * kMtu), Request(Op::kSendOnly, 2)});
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kReadResponseFirst, Op::kReadResponseLast, Op::kAcknowledge));
}

TEST_F(ResponderTest, AReadRepeatedFromTheMiddleIsAnsweredFromThere) {
  Open();
  Arrive({Read(0, 0, 4 * kMtu)});
  TakeSent();
  Arrive({Read(2, 2 * kMtu, 2 * kMtu)});
  const auto sent = TakeSent();
  EXPECT_THAT(Opcodes(sent), ElementsAre(Op::kReadResponseFirst, Op::kReadResponseLast));
  EXPECT_THAT(Psns(sent), ElementsAre(1u, 2u));
  EXPECT_EQ(sent[0].payload, std::string(memory_.begin() + 2 * kMtu, memory_.begin() + 3 * kMtu));
}

TEST_F(ResponderTest, AReadRepeatedWhileItIsBeingAnsweredStartsOver) {
  Open();
  fabric_.room = 2;
  Arrive({Read(0, 0, 40 * kMtu)});
  EXPECT_EQ(TakeSent().size(), 2u);
  Arrive({Read(0, 0, 40 * kMtu)});
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  const auto sent = TakeSent();
  EXPECT_EQ(sent.back().packet.psn, 38u);
  size_t firsts = 0;
  for (const Sent& s : sent) firsts += s.packet.opcode == Op::kReadResponseFirst;
  EXPECT_LE(firsts, 2u);
}

TEST_F(ResponderTest, AnAtomicIsExecutedOnceHoweverOftenItIsRepeated) {
  Open();
  const uint64_t before = Word(64);
  Arrive({Add(0, 64, 5)});
  auto sent = TakeSent();
  ASSERT_THAT(Opcodes(sent), ElementsAre(Op::kAtomicAcknowledge));
  EXPECT_EQ(sent[0].packet.original, before);
  Arrive({Add(0, 64, 5), Add(0, 64, 5)});
  sent = TakeSent();
  ASSERT_THAT(Opcodes(sent), testing::Each(Op::kAtomicAcknowledge));
  EXPECT_EQ(sent[0].packet.original, before);
  EXPECT_EQ(sent[0].packet.psn, kFirstReceived);
  EXPECT_EQ(Word(64), before + 5);
}

TEST_F(ResponderTest, AnAtomicTooOldToBeRememberedIsNotAnswered) {
  Open();
  for (uint32_t i = 0; i < 17; ++i) {
    Arrive({Add(i, 64, 1)});
    TakeSent();
  }
  const uint64_t after = Word(64);
  Arrive({Add(0, 64, 1)});
  EXPECT_THAT(TakeSent(), IsEmpty());
  EXPECT_EQ(Word(64), after);
}

TEST_F(ResponderTest, ASolicitedMessageRaisesTheEventThatWaitsForOne) {
  Open();
  for (uint64_t i = 0; i < 2; ++i) PostReceive(i, Piece(0, 10));
  completions_->RequestNotify(/*solicited_only=*/true);
  Arrive({Request(Op::kSendOnly, 0)});
  Run();
  EXPECT_EQ(events_, 0);
  Packet solicited = Request(Op::kSendOnly, 1);
  solicited.solicited = true;
  Arrive({solicited});
  Run();
  EXPECT_EQ(events_, 1);
}

TEST_F(ResponderTest, AQueuePairThatMayNotSendYetReceivesAndAnswers) {
  Open();
  queue_pair_ = MakeQueuePair();
  QueuePairAttributes attributes;
  attributes.peer = peer_;
  attributes.peer_number = kPeerNumber;
  attributes.receive_psn = kFirstReceived;
  attributes.path_mtu = kMtu;
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kReadyToReceive, attributes).ok());
  PostReceive(1, Piece(0, 10));
  Arrive({Request(Op::kSendOnly, 0)});
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kAcknowledge));
  EXPECT_EQ(Poll().size(), 1u);
}

TEST_F(ResponderTest, AReceiveIsScatteredOverItsPieces) {
  Open();
  const Sge pieces[] = {Piece(0, 100), Piece(500, 0), Piece(1000, 300)};
  ReceiveRequest request;
  request.sges = pieces;
  ASSERT_TRUE(queue_pair_->PostReceive(absl::MakeConstSpan(&request, 1)).ok());
  const auto bytes = Bytes(kMtu + 50, 3);
  const auto part = absl::MakeConstSpan(bytes);
  Arrive({Request(Op::kSendFirst, 0, part.first(kMtu)), Request(Op::kSendLast, 1, part.subspan(kMtu))});
  EXPECT_TRUE(MemoryHolds(0, part.first(100)));
  EXPECT_TRUE(MemoryHolds(1000, part.subspan(100)));
}

}  // namespace
}  // namespace tokamak::verbs::soft
