// Memory windows packet by packet: what a bind opens, to whom, and what becomes of it.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "tests/verbs/soft/windowed_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using Op = PacketOpcode;
using Status = CompletionStatus;

using WindowBindingTest = WindowedNic;

// They add no packet to any batch, so nothing that is sent or answered begins the next turn.
TEST_F(WindowBindingTest, AnyNumberOfBindsAndInvalidatesAtOnceIsCarriedOutThoughNothingElseHappens) {
  constexpr uint64_t kPairs = 100;
  queue_pair_options_.max_send_requests = 2 * kPairs;
  OpenWithWindow();
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    ASSERT_TRUE(PostRequest(BindRequest(2 * pair, 1000, 500, kRemoteWrite)).ok());
    ASSERT_TRUE(PostRequest(InvalidateRequest(2 * pair + 1, window_->rkey())).ok());
  }
  Run();
  const auto done = Outcomes(Poll());
  ASSERT_THAT(done, SizeIs(2 * kPairs));
  for (uint64_t id = 0; id < done.size(); ++id) EXPECT_THAT(done[id], Pair(id, Status::kSuccess));
  EXPECT_THAT(TakeSent(), IsEmpty());
}

TEST_F(WindowBindingTest, AWindowIsForThePeerOfItsQueuePairOnly) {
  OpenWithWindow();
  MustBind(0, 500, kRemoteWrite);
  auto binder = std::move(queue_pair_);
  queue_pair_ = MakeQueuePair();
  Walk(*queue_pair_);
  ExpectRefused(WriteTo(0, 0, window_->rkey()));
}

TEST_F(WindowBindingTest, AWindowWhoseQueuePairEndedIsBoundAgainThroughAnother) {
  OpenWithWindow();
  for (const char* how : {"Error", "reset", "gone"}) {
    SCOPED_TRACE(how);
    MustBind(1000, 500, kRemoteWrite);
    if (how == std::string("Error")) {
      ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kError).ok());
    } else if (how == std::string("reset")) {
      ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kReset).ok());
    } else {
      queue_pair_.reset();
    }
    const std::unique_ptr<QueuePair> before = std::exchange(queue_pair_, MakeQueuePair());
    Walk(*queue_pair_);
    MustBind(1000, 500, kRemoteWrite);
    TakeSent();
    Arrive({WriteTo(0, 1000, window_->rkey())});
    const auto sent = TakeSent();
    ASSERT_THAT(sent, SizeIs(1));
    EXPECT_EQ(sent[0].packet.syndrome, kAck);
    ASSERT_TRUE(PostRequest(InvalidateRequest(2, window_->rkey())).ok());
    Run();
    EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kSuccess)));
  }
}

TEST_F(WindowBindingTest, AQueuePairThatWasResetOpensNoOldWindow) {
  OpenWithWindow();
  MustBind(0, 500, kRemoteWrite);
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kReset).ok());
  QueuePairAttributes attributes;
  attributes.remote_access = kAll;
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kInit, attributes).ok());
  Walk(*queue_pair_);
  // Any queue pair of the domain may take it back, to bind it again.
  ASSERT_TRUE(PostRequest(InvalidateRequest(2, window_->rkey())).ok());
  Run();
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kSuccess)));
  MustBind(0, 500, kRemoteWrite);
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kReset).ok());
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kInit, attributes).ok());
  Walk(*queue_pair_);
  ExpectRefused(WriteTo(0, 0, window_->rkey()));
}

TEST_F(WindowBindingTest, ARegionThatGoesInTheMiddleOfAWriteEndsIt) {
  OpenWithWindow();
  MustBind(0, 5000, kRemoteWrite);
  const std::vector<uint8_t> full = Bytes(kMtu, 9);
  Arrive({To(Request(Op::kWriteFirst, 0, full), Remote(0), window_->rkey(), 3 * kMtu)});
  Run();
  EXPECT_TRUE(MemoryHolds(0, full));
  ground_.reset();
  const std::vector<uint8_t> before(memory_.begin() + kMtu, memory_.begin() + 3 * kMtu);
  ExpectRefused(Request(Op::kWriteMiddle, 1, full));
  EXPECT_TRUE(MemoryHolds(kMtu, before));
}

TEST_F(WindowBindingTest, ABindIsCarriedOutOnceHoweverOftenEarlierRequestsAreSent) {
  OpenWithWindow();
  Post(Opcode::kSend, 1, Piece(0, 10));
  ASSERT_TRUE(PostRequest(BindRequest(2, 1000, 500, kRemoteWrite)).ok());
  Post(Opcode::kSend, 3, Piece(0, 10));
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(kFirstSent, kFirstSent + 1));
  EXPECT_THAT(Poll(), IsEmpty()) << "what is before it has not completed";
  // It is bound already: the message that tells the peer is on its way.
  Arrive({WriteTo(0, 1000, window_->rkey())});
  TakeSent();
  EXPECT_TRUE(MemoryHolds(1000, payload_));
  Run(base::Microseconds(1500));
  EXPECT_THAT(TakeSent(), testing::Not(IsEmpty())) << "again";
  EXPECT_GE(counters().timeouts, 1u);
  Arrive({Ack(0)});
  Run();
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess), Pair(2, Status::kSuccess)));
  Arrive({Ack(1)});
  Run();
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(3, Status::kSuccess)));
}

TEST_F(WindowBindingTest, ABadBindFailsWhenItsTurnComesAndAllBehindItIsFlushed) {
  OpenWithWindow();
  Post(Opcode::kSend, 1, Piece(0, 10));
  ASSERT_TRUE(PostRequest(BindRequest(2, 1, kMemory, kRemoteWrite)).ok());
  Post(Opcode::kSend, 3, Piece(0, 10));
  EXPECT_THAT(TakeSent(), SizeIs(1)) << "nothing behind it goes";
  EXPECT_THAT(Poll(), IsEmpty());
  Run(base::Microseconds(1500));
  EXPECT_EQ(queue_pair_->state(), QueuePairState::kReadyToSend);
  Arrive({Ack(0)});
  Run();
  EXPECT_THAT(Outcomes(Poll()),
              ElementsAre(Pair(1, Status::kSuccess), Pair(2, Status::kWindowBind), Pair(3, Status::kFlushed)));
  EXPECT_EQ(queue_pair_->state(), QueuePairState::kError);
}

TEST_F(WindowBindingTest, AWindowThatIsBoundCannotBeBoundAgain) {
  OpenWithWindow();
  MustBind(0, 100, kRemoteWrite);
  ASSERT_TRUE(PostRequest(BindRequest(2, 200, 100, kRemoteWrite)).ok());
  Run();
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kWindowBind)));
}

TEST_F(WindowBindingTest, AMalformedRequestIsRefusedWhenItIsPosted) {
  OpenWithWindow();
  const uint32_t rkey = window_->rkey();
  Sge piece = Piece(0, 10);
  const auto refused = [&](const std::function<void(SendRequest&)>& change) {
    SendRequest request = BindRequest(1, 0, 100, kRemoteWrite);
    change(request);
    return absl::IsInvalidArgument(PostRequest(request).status);
  };
  EXPECT_TRUE(refused([](SendRequest& r) { r.bind.window = nullptr; }));
  EXPECT_TRUE(refused([](SendRequest& r) { r.bind.region = nullptr; }));
  EXPECT_TRUE(refused([](SendRequest& r) { r.bind.access = kLocalWrite; }));
  EXPECT_TRUE(refused([](SendRequest& r) { r.bind.access = kRemoteWrite | kWindowBind; }));
  EXPECT_TRUE(refused([&](SendRequest& r) { r.sges = {&piece, 1}; }));
  EXPECT_TRUE(refused([](SendRequest& r) { r.flags = kInline; }));
  EXPECT_TRUE(refused([&](SendRequest& r) {
    r.opcode = Opcode::kLocalInvalidate;
    r.sges = {&piece, 1};
  }));
  EXPECT_EQ(window_->rkey(), rkey) << "what was not taken changes no key";
  EXPECT_EQ(queue_pair_->state(), QueuePairState::kReadyToSend);
}

// Whatever a peer sends, it never writes where no window is open for it.
TEST_F(WindowBindingTest, APeerThatGuessesWritesNowhereElse) {
  OpenWithWindow();
  base::Random random(7);
  region_.reset();  // only windows open anything
  for (int round = 0; round < 60; ++round) {
    queue_pair_ = MakeQueuePair();
    Walk(*queue_pair_);
    window_ = *domain_->CreateMemoryWindow();
    const size_t offset = random.Below(kMemory / 2);
    const size_t length = 1 + random.Below(1000);
    MustBind(offset, length, random.Chance(0.5) ? kRemoteWrite : kRemoteRead);
    std::vector<uint8_t> before = memory_;
    for (uint32_t index = 0; queue_pair_->state() == QueuePairState::kReadyToSend && index < 20; ++index) {
      PostReceive(index, {});
      const uint32_t rkey = random.Chance(0.7) ? window_->rkey() : window_->rkey() + 4096 * random.Below(3) - 4096;
      const auto size = static_cast<uint32_t>(random.Below(kMtu) + 1);
      const std::vector<uint8_t> bytes = Bytes(size, static_cast<uint8_t>(random.Next()));
      if (random.Chance(0.1)) {
        Arrive({Invalidating(Op::kSendOnlyWithInvalidate, index, rkey)});
      } else {
        const uint64_t to = Remote(offset) + random.Below(length + 20) - random.Below(20);
        Arrive({To(Request(Op::kWriteOnly, index, bytes), to, rkey, size)});
      }
      TakeSent();
    }
    std::copy_n(memory_.begin() + static_cast<ptrdiff_t>(offset), length,
                before.begin() + static_cast<ptrdiff_t>(offset));
    ASSERT_EQ(before, memory_) << "round " << round;
    Poll();
    TakeSent();
  }
}

}  // namespace
}  // namespace tokamak::verbs::soft
