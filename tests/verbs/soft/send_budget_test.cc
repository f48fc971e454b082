// What all queue pairs of a NIC may have unacknowledged together: the buffer that they meet in is one.
#include <algorithm>

#include "gmock/gmock.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

// The first queue pair WRITEs, the second SENDs: so that their packets can be told apart.
class SendBudgetTest : public OneNic {
 protected:
  static constexpr uint32_t kBudget = 16;

  void OpenBoth() {
    device_options_.window_packets = kBudget;
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

TEST_F(SendBudgetTest, WhereAllIsTakenEachMaySendOnePacket) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 2 * kBudget * kMtu));
  EXPECT_EQ(Count(), std::make_pair(long{kBudget}, 0L));
  PostSecond(2 * kBudget * kMtu);
  EXPECT_EQ(Count(), std::make_pair(0L, 1L));
}

TEST_F(SendBudgetTest, WhoeverSendsTheLastThatMayGoAsksForAnAcknowledgement) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 10 * kMtu));
  TakeSent();
  PostSecond(2 * kBudget * kMtu);
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), kBudget - 10);
  EXPECT_TRUE(sent.back().packet.ack_request);
}

TEST_F(SendBudgetTest, RoomGoesToThoseThatWaitNotToWhoWasAcknowledged) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 2 * kBudget * kMtu));
  Count();
  PostSecond(2 * kBudget * kMtu);
  Count();
  Arrive({Ack(4)});
  EXPECT_EQ(Count(), std::make_pair(0L, 4L)) << "five packets were acknowledged, one more than allowed was on its way";
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
  EXPECT_EQ(Count(), std::make_pair(0L, long{kBudget} - 1));
}

TEST_F(SendBudgetTest, ADroppedQueuePairGivesRoomBack) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 2 * kBudget * kMtu));
  Count();
  PostSecond(2 * kBudget * kMtu);
  Count();
  queue_pair_.reset();
  EXPECT_EQ(Count(), std::make_pair(0L, long{kBudget} - 1));
}

TEST_F(SendBudgetTest, SilenceGivesRoomBackToOthers) {
  reliability_.ack_timeout = base::Milliseconds(4);
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 2 * kBudget * kMtu));
  Count();
  Run(base::Milliseconds(3));
  PostSecond(2 * kBudget * kMtu);
  EXPECT_EQ(Count(), std::make_pair(0L, 1L));
  Run(base::Milliseconds(3));
  EXPECT_EQ(Count().second, long{kBudget} - 1) << "the first's packets are taken to be lost";
}

TEST_F(SendBudgetTest, APacketThatIsNotReadyToBeTakenGivesRoomBack) {
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 2 * kBudget * kMtu));
  Count();
  PostSecond(2 * kBudget * kMtu);
  Count();
  Arrive({Ack(0, kNotReadyNak | 14)});
  EXPECT_EQ(Count().second, long{kBudget} - 1);
}

TEST_F(SendBudgetTest, LateAcknowledgementsOfPacketsThatWentTwiceCountOnce) {
  reliability_.ack_timeout = base::Milliseconds(4);
  OpenBoth();
  Post(Opcode::kWrite, 1, Piece(0, 3 * kBudget * kMtu));
  Count();
  Run(base::Milliseconds(6));
  EXPECT_EQ(Count(), std::make_pair(long{kBudget}, 0L));
  Arrive({Ack(kBudget - 1), Ack(kBudget - 1)});
  EXPECT_EQ(Count(), std::make_pair(long{kBudget}, 0L));
  PostSecond(2 * kBudget * kMtu);
  EXPECT_EQ(Count(), std::make_pair(0L, 1L));
}

}  // namespace
}  // namespace tokamak::verbs::soft
