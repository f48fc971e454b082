// A requester's reaction to loss, and to a peer that is not ready.
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "lib/verbs/soft/congestion/congestion.h"
#include "lib/verbs/soft/rc/requester.h"
#include "lib/verbs/time_codes.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Op = PacketOpcode;
using Status = CompletionStatus;

class RequesterLossTest : public OneNic {};

TEST_F(RequesterLossTest, ANakSendsAgainFromTheGapOn) {
  Open();
  for (uint64_t i = 0; i < 4; ++i) Post(Opcode::kSend, i, Piece(0, 1));
  TakeSent();
  Arrive({Ack(2, kSequenceNak)});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(0, Status::kSuccess), Pair(1, Status::kSuccess)));
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(0u, 1u));
  EXPECT_EQ(counters().packets_retransmitted, 2u);
}

TEST_F(RequesterLossTest, TheSameNakTwiceIsAnsweredOnce) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1));
  Post(Opcode::kSend, 2, Piece(0, 1));
  TakeSent();
  Arrive({Ack(0, kSequenceNak), Ack(0, kSequenceNak)});
  EXPECT_EQ(TakeSent().size(), 2u);
  Arrive({Ack(0, kSequenceNak)});
  EXPECT_THAT(TakeSent(), IsEmpty());
}

TEST_F(RequesterLossTest, SilenceSendsAgainUntilTheRetriesAreUsedUp) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, kMtu + 1));
  Post(Opcode::kSend, 2, Piece(0, 1));
  EXPECT_EQ(TakeSent().size(), 3u);
  for (int retry = 0; retry < reliability_.retry_count; ++retry) {
    Run(timeout() - base::Nanoseconds(1));
    EXPECT_THAT(TakeSent(), IsEmpty());
    Run(base::Nanoseconds(1));
    EXPECT_EQ(TakeSent().size(), 3u);
  }
  Run(timeout());
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kRetryExceeded), Pair(2, Status::kFlushed)));
  EXPECT_EQ(counters().timeouts, 3u);
  Run(base::Seconds(10));
  EXPECT_THAT(TakeSent(), IsEmpty());
}

TEST_F(RequesterLossTest, ProgressGivesAllRetriesBack) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 3 * kMtu));
  TakeSent();
  for (uint32_t packet = 0; packet < 2; ++packet) {
    Run(timeout() * 2);
    TakeSent();
    Arrive({Ack(packet)});
  }
  Run(timeout() * 2);
  EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_EQ(counters().timeouts, 6u);
  Arrive({Ack(2)});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
}

TEST_F(RequesterLossTest, AnAckOfTheFirstTryCountsWhileTheSecondIsUnderWay) {
  Open();
  fabric_.room = 3;
  Post(Opcode::kSend, 1, Piece(0, 3 * kMtu));
  TakeSent();
  Run(timeout());  // the port takes nothing of the second try
  EXPECT_THAT(TakeSent(), IsEmpty());
  Arrive({Ack(2)});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
}

TEST_F(RequesterLossTest, APeerThatIsNotReadyIsRetriedAfterTheTimeItNamed) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1));
  Post(Opcode::kSend, 2, Piece(0, 1));
  TakeSent();
  constexpr uint8_t kCode = 20;  // 10.24 ms
  Arrive({Ack(0, kNotReadyNak | kCode)});
  Run(base::Microseconds(10240) - base::Nanoseconds(1));
  EXPECT_THAT(TakeSent(), IsEmpty()) << "nor a time-out meanwhile";
  Run(base::Nanoseconds(1));
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(0xfffffeu, 0xffffffu));
}

TEST_F(RequesterLossTest, APeerThatIsNeverReadyIsRetriedForEver) {
  reliability_.rnr_retry_count = kRnrRetryForever;
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1));
  TakeSent();
  for (int i = 0; i < 100; ++i) {
    Arrive({Ack(0, kNotReadyNak | 1)});
    Run(base::Milliseconds(1));
    EXPECT_EQ(TakeSent().size(), 1u);
  }
  EXPECT_THAT(Poll(), IsEmpty());
}

TEST_F(RequesterLossTest, APeerThatIsTooOftenNotReadyFailsTheRequest) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1));
  Post(Opcode::kSend, 2, Piece(0, 1));
  TakeSent();
  for (int i = 0; i < reliability_.rnr_retry_count; ++i) {
    Arrive({Ack(0, kNotReadyNak | 1)});
    Run(base::Milliseconds(1));
    EXPECT_EQ(TakeSent().size(), 2u);
  }
  Arrive({Ack(0, kNotReadyNak | 1)});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kRnrRetryExceeded), Pair(2, Status::kFlushed)));
}

TEST_F(RequesterLossTest, AReadIsResumedAtTheFirstMissingPacket) {
  Open();
  Post(Opcode::kRead, 1, Piece(0, 4 * kMtu));
  TakeSent();
  const auto bytes = Bytes(4 * kMtu, 9);
  const auto part = absl::MakeConstSpan(bytes);
  Arrive({Answer(Op::kReadResponseFirst, 0, part.subspan(0, kMtu)),
          Answer(Op::kReadResponseMiddle, 2, part.subspan(2 * kMtu, kMtu))});
  const auto again = TakeSent();
  ASSERT_THAT(Opcodes(again), ElementsAre(Op::kReadRequest));
  EXPECT_EQ(again[0].packet.psn, 0xffffffu);
  EXPECT_EQ(again[0].packet.remote_address, 0x10000u + kMtu);
  EXPECT_EQ(again[0].packet.dma_length, 3 * kMtu);
  // The kernel's rxe continues with MIDDLE where others begin anew with FIRST: the PSN decides.
  Arrive({Answer(Op::kReadResponseMiddle, 1, part.subspan(kMtu, kMtu)),
          Answer(Op::kReadResponseFirst, 2, part.subspan(2 * kMtu, kMtu)),
          Answer(Op::kReadResponseLast, 3, part.subspan(3 * kMtu, kMtu))});
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
  EXPECT_TRUE(MemoryHolds(0, bytes));
}

TEST_F(RequesterLossTest, AfterATimeOutALossIsNoticedAgain) {
  Open();
  Post(Opcode::kRead, 1, Piece(0, 3 * kMtu));
  TakeSent();
  Run(timeout());
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kReadRequest));
  const auto bytes = Bytes(kMtu, 1);
  Arrive({Answer(Op::kReadResponseMiddle, 1, bytes), Answer(Op::kReadResponseLast, 2, bytes)});
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kReadRequest)) << "once";
}

TEST_F(RequesterLossTest, ARepeatedReadIsCutInTheSamePlaces) {
  fabric_.window = 32 * kMtu;  // pieces of 8
  reliability_.reads_outstanding = 4;
  Open();
  Post(Opcode::kRead, 1, Piece(0, 20 * kMtu));
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(0xfffffeu, 6u, 14u));
  Arrive({Answer(Op::kReadResponseFirst, 0, Bytes(kMtu, 1)), Answer(Op::kReadResponseMiddle, 1, Bytes(kMtu, 1)),
          Answer(Op::kReadResponseMiddle, 2, Bytes(kMtu, 1))});
  Run(timeout());
  const auto again = TakeSent();
  EXPECT_THAT(Psns(again), ElementsAre(1u, 6u, 14u));
  EXPECT_EQ(again[0].packet.dma_length, 5 * kMtu);
}

TEST_F(RequesterLossTest, AnOverdueAnswerIsAskedForAgainLongBeforeTheTimeOut) {
  device_options_.congestion = CongestionControl::kAdditive;
  reliability_.ack_timeout = base::Milliseconds(67);
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1));
  TakeSent();
  Run(base::Microseconds(200));
  Arrive({Ack(0)});
  for (uint64_t i = 2; i < 12; ++i) Post(Opcode::kSend, i, Piece(0, 1));
  EXPECT_EQ(TakeSent().size(), 10u);
  Run(base::Milliseconds(1));
  EXPECT_THAT(TakeSent(), IsEmpty());
  Run(base::Milliseconds(1));
  EXPECT_EQ(TakeSent().size(), 4u) << "carefully";
  Run(base::Milliseconds(2));
  EXPECT_THAT(TakeSent(), IsEmpty()) << "twice the time, the second time";
  Run(base::Milliseconds(2));
  EXPECT_EQ(TakeSent().size(), 4u);
  EXPECT_EQ(counters().answers_overdue, 2u);
  EXPECT_EQ(counters().timeouts, 0u);
  Arrive({Ack(10)});
  EXPECT_EQ(Poll().size(), 11u);
  Run(base::Seconds(1));
  EXPECT_THAT(TakeSent(), IsEmpty());
}

TEST_F(RequesterLossTest, APauseOfThisNicIsNotTakenForALoss) {
  device_options_.congestion = CongestionControl::kAdditive;
  reliability_.ack_timeout = base::Milliseconds(67);
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1));
  TakeSent();
  Arrive({Ack(0)});
  for (const bool answered : {false, true}) {
    Post(Opcode::kSend, 2, Piece(0, 1));
    EXPECT_EQ(TakeSent().size(), 1u);
    nic_loop_.Spend(base::Milliseconds(10));
    Run(base::Milliseconds(10));
    EXPECT_THAT(TakeSent(), IsEmpty()) << "what came meanwhile is looked at first";
    if (answered) Arrive({Ack(2)});
    Run(kPause);
    EXPECT_EQ(TakeSent().size(), answered ? 0u : 1u) << "only once";
    Arrive({Ack(1)});
    EXPECT_EQ(counters().answers_overdue, 1u);
  }
}

TEST_F(RequesterLossTest, AnOverdueAnswerDoesNotCountAsARetry) {
  device_options_.congestion = CongestionControl::kAdditive;
  reliability_.ack_timeout = base::Milliseconds(67);
  Open();
  Post(Opcode::kSend, 1, Piece(0, 1));
  TakeSent();
  Arrive({Ack(0)});
  Poll();
  Post(Opcode::kSend, 2, Piece(0, 1));
  Run();
  Run(timeout() * 3 - base::Nanoseconds(1));
  EXPECT_GT(counters().answers_overdue, 2u);
  EXPECT_THAT(Poll(), IsEmpty());
  Run(base::Nanoseconds(1));
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kRetryExceeded)));
}

TEST_F(RequesterLossTest, APeerThatDoesNotAnswerLeavesRoomForTheReadsOfOthers) {
  fabric_.window = 32 * kMtu;  // pieces of 8
  reliability_.reads_outstanding = 16;
  Open();
  Post(Opcode::kRead, 1, Piece(0, 100 * kMtu));
  EXPECT_EQ(TakeSent().size(), 3u);
  const std::unique_ptr<QueuePair> dead = std::exchange(queue_pair_, MakeQueuePair());
  Walk(*queue_pair_);
  Post(Opcode::kRead, 2, Piece(0, 8 * kMtu));
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kReadRequest));
}

// Going back gives the READ's budget back, to whom waited longer: what is not asked again cannot be
// answered.
TEST_F(RequesterLossTest, WaitingForReadBudgetUsesUpNoRetries) {
  fabric_.window = 32 * kMtu;  // pieces of 8
  reliability_.reads_outstanding = 1;
  Open();
  Post(Opcode::kRead, 1, Piece(0, 8 * kMtu));
  const base::Duration short_timeout = timeout();
  reliability_.ack_timeout = base::Seconds(4);
  std::vector<std::unique_ptr<QueuePair>> others;
  for (uint64_t id = 2; id < 6; ++id) {
    others.push_back(MakeQueuePair());
    Walk(*others.back());
    std::swap(queue_pair_, others.back());
    Post(Opcode::kRead, id, Piece(0, 8 * kMtu));
    std::swap(queue_pair_, others.back());
    EXPECT_EQ(TakeSent().size(), id == 2 ? 2u : id < 5 ? 1u : 0u);
  }
  Run(short_timeout);
  EXPECT_EQ(TakeSent().size(), 1u) << "that of the last";
  Run(short_timeout * 100);
  EXPECT_EQ(counters().timeouts, 1u);
  EXPECT_THAT(Poll(), IsEmpty());
  others.pop_back();
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(kFirstSent)) << "its own, again";
  Run(short_timeout);
  EXPECT_EQ(counters().timeouts, 2u) << "now something is asked for";
}

TEST_F(RequesterLossTest, AnAnswerThatComesTwiceIsTakenOnce) {
  Open();
  Post(Opcode::kRead, 1, Piece(0, 2 * kMtu));
  TakeSent();
  const auto first = Bytes(kMtu, 1), other = Bytes(kMtu, 99);
  Arrive({Answer(Op::kReadResponseFirst, 0, first), Answer(Op::kReadResponseFirst, 0, other),
          Answer(Op::kReadResponseLast, 1, first)});
  EXPECT_EQ(Poll().size(), 1u);
  EXPECT_TRUE(MemoryHolds(0, first));
  EXPECT_EQ(counters().answers_stale, 1u);
}

}  // namespace
}  // namespace tokamak::verbs::soft
