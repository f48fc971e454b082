// Memory windows packet by packet: how they are closed, by their owner and by a peer that hands the
// key back, and by nobody else.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/verbs/soft/windowed_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using Op = PacketOpcode;
using Status = CompletionStatus;

using WindowInvalidationTest = WindowedNic;

TEST_F(WindowInvalidationTest, APeerInvalidatesWithTheLastPacketOfItsMessage) {
  OpenWithWindow();
  MustBind(1000, 500, kRemoteWrite);
  const uint32_t rkey = window_->rkey();
  PostReceive(7, Piece(0, 300));
  const std::vector<uint8_t> full = Bytes(kMtu, 1);
  Arrive({Request(Op::kSendFirst, 0, full), WriteTo(9, 1000, rkey)});  // the second is from the future
  Run();
  Arrive({Invalidating(Op::kSendLastWithInvalidate, 1, rkey, absl::MakeConstSpan(full).first(4))});
  Run();
  const auto done = Poll();
  ASSERT_THAT(Outcomes(done), ElementsAre(Pair(7, Status::kSuccess)));
  EXPECT_TRUE(done[0].has_invalidated);
  EXPECT_FALSE(done[0].has_immediate);
  EXPECT_EQ(done[0].invalidated_rkey, rkey);
  EXPECT_EQ(done[0].byte_count, kMtu + 4);
  ExpectRefused(WriteTo(2, 1000, rkey));
}

TEST_F(WindowInvalidationTest, AMessageThatWasAnsweredIsNotCarriedOutAgainAndHurtsNoLaterBinding) {
  OpenWithWindow();
  MustBind(1000, 500, kRemoteWrite);
  const uint32_t first = window_->rkey();
  PostReceive(7, Piece(0, 10));
  PostReceive(8, Piece(0, 10));
  const Packet handed_back = Invalidating(Op::kSendOnlyWithInvalidate, 0, first);
  Arrive({handed_back});
  Run();
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(7, Status::kSuccess)));
  MustBind(1000, 500, kRemoteWrite);
  TakeSent();
  Packet again = handed_back;
  Arrive({again});
  again.rkey = window_->rkey();  // nor one that was never sent like this
  Arrive({again});
  const auto answers = TakeSent();
  ASSERT_THAT(answers, testing::Not(IsEmpty()));
  for (const Sent& answer : answers) EXPECT_EQ(answer.packet.syndrome, kAck);
  EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_EQ(counters().requests_duplicate, 2u);
  Arrive({WriteTo(1, 1000, window_->rkey())});
  EXPECT_EQ(TakeSent().back().packet.syndrome, kAck);
  EXPECT_TRUE(MemoryHolds(1000, payload_));
}

TEST_F(WindowInvalidationTest, WithoutAReceiveNothingIsInvalidated) {
  OpenWithWindow();
  MustBind(1000, 500, kRemoteWrite);
  const Packet hand_back = Invalidating(Op::kSendOnlyWithInvalidate, 0, window_->rkey());
  Arrive({hand_back});
  EXPECT_TRUE(IsNotReady(TakeSent().back().packet.syndrome));
  PostReceive(7, Piece(0, 10));
  Arrive({hand_back});
  EXPECT_EQ(TakeSent().back().packet.syndrome, kAck);
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(7, Status::kSuccess)));
}

TEST_F(WindowInvalidationTest, AKeyThatIsNoWindowOfThisQueuePairCannotBeHandedBack) {
  OpenWithWindow();
  auto other_domain = *device_->CreateProtectionDomain();
  auto other_region = *other_domain->RegisterMemory(absl::MakeSpan(memory_), kAll);
  auto unbound = *domain_->CreateMemoryWindow();
  // Bound for a peer of another queue pair.
  MustBind(0, 100, kRemoteWrite);
  const uint32_t foreign = window_->rkey();
  auto binder = std::move(queue_pair_);
  for (const uint32_t rkey : {foreign, region_->rkey(), ground_->rkey(), other_region->rkey(), unbound->rkey(),
                              foreign + 1, uint32_t{0}, uint32_t{0xffffffff}}) {
    SCOPED_TRACE(rkey);
    queue_pair_ = MakeQueuePair();
    Walk(*queue_pair_);
    PostReceive(7, Piece(0, 100));
    const std::vector<uint8_t> before(memory_.begin(), memory_.begin() + 100);
    ExpectRefused(Invalidating(Op::kSendOnlyWithInvalidate, 0, rkey, payload_));
    EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(7, Status::kFlushed)));
    EXPECT_TRUE(MemoryHolds(0, before));
  }
  // Their windows still work.
  queue_pair_ = std::move(binder);
  Arrive({WriteTo(0, 0, foreign)});
  EXPECT_EQ(TakeSent().back().packet.syndrome, kAck);
  EXPECT_TRUE(MemoryHolds(0, payload_));
}

// A busy port keeps answers that point into the window's memory; whoever closes it takes them out
// again.
TEST_F(WindowInvalidationTest, AClosedWindowIsNotReadForAPortThatWasBusy) {
  for (const char* how : {"invalidated", "dropped", "its region dropped"}) {
    SCOPED_TRACE(how);
    window_.reset();
    ground_.reset();
    queue_pair_.reset();
    fabric_.room = SIZE_MAX;
    if (device_ == nullptr) {
      OpenWithWindow();
    } else {
      queue_pair_ = MakeQueuePair();
      Walk(*queue_pair_);
      MakeWindow();
    }
    MustBind(0, 5000, kRemoteRead);
    const uint32_t rkey = window_->rkey();
    TakeSent();
    fabric_.room = 1;
    Arrive({To(Request(Op::kReadRequest, 0), Remote(0), rkey, 3 * kMtu)});
    EXPECT_THAT(TakeSent(), SizeIs(1));
    const uint64_t dropped = device_->counters().dropped_before_send;
    if (how == std::string("dropped")) {
      window_.reset();
    } else if (how == std::string("its region dropped")) {
      ground_.reset();
    } else {
      PostReceive(3, Piece(0, 10));
      Arrive({Invalidating(Op::kSendOnlyWithInvalidate, 3, rkey)});
      Run();
    }
    EXPECT_EQ(device_->counters().dropped_before_send, dropped + 2);
    fabric_.room = SIZE_MAX;
    fabric_.Ready();
    for (const Sent& sent : TakeSent()) EXPECT_TRUE(sent.payload.empty()) << "bytes of a closed window left the NIC";
    Poll();
  }
}

TEST_F(WindowInvalidationTest, AKeyThatIsNoWindowsCannotBeInvalidated) {
  OpenWithWindow();
  for (const uint32_t rkey : {region_->rkey(), window_->rkey(), uint32_t{0}}) {
    queue_pair_ = MakeQueuePair();
    Walk(*queue_pair_);
    ASSERT_TRUE(PostRequest(InvalidateRequest(2, rkey)).ok());
    Run();
    EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kWindowBind)));
  }
}

TEST_F(WindowInvalidationTest, AFencedInvalidateWaitsForEverythingBeforeIt) {
  OpenWithWindow();
  MustBind(0, 500, kRemoteWrite);
  const uint32_t rkey = window_->rkey();
  Post(Opcode::kSend, 1, Piece(0, 10));
  ASSERT_TRUE(PostRequest(InvalidateRequest(2, rkey, kSignaled | kFence)).ok());
  TakeSent();
  Arrive({WriteTo(0, 0, rkey)});
  EXPECT_EQ(TakeSent().back().packet.syndrome, kAck) << "it waits for the send";
  Arrive({Ack(0)});
  Run();
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess), Pair(2, Status::kSuccess)));
  ExpectRefused(WriteTo(1, 0, rkey));
}

TEST_F(WindowInvalidationTest, AnInvalidateWithoutAFenceDoesNotWaitForAnswers) {
  OpenWithWindow();
  MustBind(0, 500, kRemoteWrite);
  const uint32_t rkey = window_->rkey();
  Post(Opcode::kSend, 1, Piece(0, 10));
  ASSERT_TRUE(PostRequest(InvalidateRequest(2, rkey)).ok());
  TakeSent();
  ExpectRefused(WriteTo(0, 0, rkey));
}

TEST_F(WindowInvalidationTest, ASendWithInvalidateNamesTheKeyInItsLastPacket) {
  OpenWithWindow();
  Post(Opcode::kSendWithInvalidate, 1, Piece(0, 2 * kMtu + 5));
  Post(Opcode::kSendWithInvalidate, 2, Piece(0, 5), kSignaled | kInline | kSolicited);
  const auto sent = TakeSent();
  EXPECT_THAT(Opcodes(sent),
              ElementsAre(Op::kSendFirst, Op::kSendMiddle, Op::kSendLastWithInvalidate, Op::kSendOnlyWithInvalidate));
  EXPECT_EQ(sent[2].packet.rkey, 0x77u);
  EXPECT_EQ(sent[3].packet.rkey, 0x77u);
  EXPECT_TRUE(sent[3].packet.solicited);
  Arrive({Ack(3)});
  Run();
  const auto done = Poll();
  EXPECT_THAT(Outcomes(done), ElementsAre(Pair(1, Status::kSuccess), Pair(2, Status::kSuccess)));
  EXPECT_EQ(done[0].opcode, CompletionOpcode::kSend);
}

TEST_F(WindowInvalidationTest, APeersReadThatIsNotFencedEndsWhenItHandsTheKeyBack) {
  OpenWithWindow();
  MustBind(0, 5000, kRemoteRead);
  const uint32_t rkey = window_->rkey();
  PostReceive(7, Piece(0, 10));
  TakeSent();
  Arrive({To(Request(Op::kReadRequest, 0), Remote(0), rkey, 3 * kMtu),
          Invalidating(Op::kSendOnlyWithInvalidate, 3, rkey)});
  const auto sent = TakeSent();
  EXPECT_EQ(sent.back().packet.syndrome, kRemoteAccessNak);
  EXPECT_EQ(sent.back().packet.psn, kFirstReceived) << "the READ";
  EXPECT_EQ(queue_pair_->state(), QueuePairState::kError);
}

}  // namespace
}  // namespace tokamak::verbs::soft
