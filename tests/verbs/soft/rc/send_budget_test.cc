// The bound on unacknowledged packets of all queue pairs of a NIC together: they meet in one
// buffer.
#include <algorithm>

#include "gmock/gmock.h"
#include "lib/verbs/soft/state/nic_state.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

// The first queue pair WRITEs, the second SENDs, so that their packets differ.
class SendBudgetTest : public OneNic {
 protected:
  static constexpr uint32_t kBudget = 16;

  void OpenBoth() {
    device_options_.window_packets = kBudget;
    reliability_.ack_timeout = base::Milliseconds(4);
    fabric_.window = 0;
    Open();
    second_ = MakeQueuePair();
    Walk(*second_);
  }
  void PostSecond(size_t bytes) {
    const Sge sge = Piece(0, bytes);
    SendRequest request;
    request.flags = kSignaled;
    request.sges = absl::MakeConstSpan(&sge, 1);
    ASSERT_TRUE(second_->PostSend(absl::MakeConstSpan(&request, 1)).ok());
  }
  // How many packets of each went.
  std::pair<long, long> Count() {
    const auto opcodes = Opcodes(TakeSent());
    const auto writes = std::count_if(opcodes.begin(), opcodes.end(),
                                      [](PacketOpcode opcode) { return opcode >= PacketOpcode::kWriteFirst; });
    return {writes, static_cast<long>(opcodes.size()) - writes};
  }

  std::unique_ptr<QueuePair> second_;
};

TEST_F(SendBudgetTest, WithAllRoomTakenEachQueuePairMaySendOnePacket) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 2 * kBudget * kMtu));
  EXPECT_EQ(Count(), std::make_pair(long{kBudget}, 0L));
  PostSecond(2 * kBudget * kMtu);
  EXPECT_EQ(Count(), std::make_pair(0L, 0L));
  Run(NicState::kSendStall);
  EXPECT_EQ(Count(), std::make_pair(0L, 1L));
  Run(NicState::kSendStall * 2);
  EXPECT_EQ(Count(), std::make_pair(0L, 0L)) << "one, until something is acknowledged";
}

TEST_F(SendBudgetTest, WhileAcknowledgementsComeNoQueuePairSendsBeforeItsTurn) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 4 * kBudget * kMtu));
  Count();
  const auto third = MakeQueuePair();
  Walk(*third);
  PostSecond(2 * kBudget * kMtu);
  const Sge sge = Piece(0, kMtu);
  SendRequest request;
  request.sges = absl::MakeConstSpan(&sge, 1);
  ASSERT_TRUE(third->PostSend(absl::MakeConstSpan(&request, 1)).ok());
  for (uint32_t packet = 0; packet < 3; ++packet) {
    Run(NicState::kSendStall / 2);
    Arrive({Ack(packet)});
    EXPECT_EQ(Count(), std::make_pair(0L, 1L)) << "as much as was given back: " << packet;
  }
}

TEST_F(SendBudgetTest, TheLastPacketThatMayGoAsksForAnAcknowledgement) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 10 * kMtu));
  TakeSent();
  PostSecond(2 * kBudget * kMtu);
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), kBudget - 10);
  EXPECT_TRUE(sent.back().packet.ack_request);
}

TEST_F(SendBudgetTest, WithScarceRoomEachQueuePairAwaitsAnAcknowledgement) {
  OpenBoth();
  PostSecond(3 * kMtu);
  EXPECT_FALSE(TakeSent().front().packet.ack_request) << "there is room";
  Post(Opcode::kWrite, 1, Piece(0, 9 * kMtu));
  TakeSent();
  const auto third = MakeQueuePair();
  Walk(*third);
  const Sge sge = Piece(0, 3 * kMtu);
  SendRequest request;
  request.sges = absl::MakeConstSpan(&sge, 1);
  ASSERT_TRUE(third->PostSend(absl::MakeConstSpan(&request, 1)).ok());
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_TRUE(sent[0].packet.ack_request);
  EXPECT_FALSE(sent[1].packet.ack_request) << "one is enough";
}

TEST_F(SendBudgetTest, WithScarceRoomARepeatedPacketAsksAgain) {
  OpenBoth();
  PostSecond(12 * kMtu);
  TakeSent();
  Post(Opcode::kWrite, 1, Piece(0, 40 * kMtu));
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_TRUE(sent.front().packet.ack_request);
  Arrive({Ack(0, kSequenceNak)});
  const auto again = TakeSent();
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again.front().packet.psn, kFirstSent);
  EXPECT_TRUE(again.front().packet.ack_request) << "what was asked may be lost as well";
}

TEST_F(SendBudgetTest, RoomGoesToWaitingQueuePairsNotToTheAcknowledgedOne) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 2 * kBudget * kMtu));
  Count();
  PostSecond(2 * kBudget * kMtu);
  Count();
  Arrive({Ack(4)});
  EXPECT_EQ(Count(), std::make_pair(0L, 5L));
  Arrive({Ack(7)});
  const auto [first, second] = Count();
  EXPECT_EQ(first + second, 3) << "afterwards they share";
}

TEST_F(SendBudgetTest, AnErrorGivesRoomBack) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 2 * kBudget * kMtu));
  Count();
  PostSecond(2 * kBudget * kMtu);
  Count();
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kError).ok());
  EXPECT_EQ(Count(), std::make_pair(0L, long{kBudget}));
}

TEST_F(SendBudgetTest, ADroppedQueuePairGivesRoomBack) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 2 * kBudget * kMtu));
  Count();
  PostSecond(2 * kBudget * kMtu);
  Count();
  queue_pair_.reset();
  EXPECT_EQ(Count(), std::make_pair(0L, long{kBudget}));
}

TEST_F(SendBudgetTest, SilenceGivesRoomBackToOthers) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 2 * kBudget * kMtu));
  Count();
  Run(base::Milliseconds(3));
  PostSecond(2 * kBudget * kMtu);
  EXPECT_EQ(Count(), std::make_pair(0L, 0L));
  Run(base::Milliseconds(3));
  EXPECT_EQ(Count().second, long{kBudget}) << "the first's packets are taken to be lost";
}

TEST_F(SendBudgetTest, APacketThatIsNotReadyToBeTakenGivesRoomBack) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 2 * kBudget * kMtu));
  Count();
  PostSecond(2 * kBudget * kMtu);
  Count();
  Arrive({Ack(0, kNotReadyNak | 14)});
  EXPECT_EQ(Count().second, long{kBudget});
}

TEST_F(SendBudgetTest, LateAcknowledgementsOfPacketsThatWentTwiceCountOnce) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 3 * kBudget * kMtu));
  Count();
  Run(base::Milliseconds(6));
  EXPECT_EQ(Count(), std::make_pair(long{kBudget}, 0L));
  Arrive({Ack(kBudget - 1), Ack(kBudget - 1)});
  EXPECT_EQ(Count(), std::make_pair(long{kBudget}, 0L));
  PostSecond(2 * kBudget * kMtu);
  EXPECT_EQ(Count(), std::make_pair(0L, 0L));
}

}  // namespace
}  // namespace tokamak::verbs::soft
