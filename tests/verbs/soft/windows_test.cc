// Memory windows packet by packet: what a peer may open, hand back and forge, and what a retransmission must not do twice.
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "lib/base/random.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using Op = PacketOpcode;
using Status = CompletionStatus;

constexpr Access kWindowed = kLocalWrite | kWindowBind;

// A NIC with a region for windows and one window; the test is the peer.
class WindowsTest : public OneNic {
 protected:
  void OpenWithWindow() {
    Open();
    ground_ = *domain_->RegisterMemory(absl::MakeSpan(memory_), kWindowed);
    window_ = *domain_->CreateMemoryWindow();
  }
  SendRequest BindRequest(uint64_t id, size_t offset, size_t length, Access access) {
    SendRequest request;
    request.id = id;
    request.opcode = Opcode::kBindWindow;
    request.flags = kSignaled;
    request.bind = {window_.get(), ground_.get(), memory_.data() + offset, length, access};
    return request;
  }
  static SendRequest InvalidateRequest(uint64_t id, uint32_t rkey, SendFlags flags = kSignaled) {
    SendRequest request;
    request.id = id;
    request.opcode = Opcode::kLocalInvalidate;
    request.flags = flags;
    request.rkey = rkey;
    return request;
  }
  PostResult PostRequest(const SendRequest& request) { return queue_pair_->PostSend({&request, 1}); }
  void MustBind(size_t offset, size_t length, Access access) {
    ASSERT_TRUE(PostRequest(BindRequest(1, offset, length, access)).ok());
    Run();
    ASSERT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
  }
  Packet WriteTo(uint32_t index, size_t offset, uint32_t rkey) {
    return To(Request(Op::kWriteOnly, index, payload_), Remote(offset), rkey, static_cast<uint32_t>(payload_.size()));
  }
  Packet Invalidating(Op opcode, uint32_t index, uint32_t rkey, absl::Span<const uint8_t> payload = {}) const {
    Packet packet = Request(opcode, index, payload);
    packet.rkey = rkey;
    return packet;
  }
  // `packet` is refused, and so ends the connection.
  void ExpectRefused(const Packet& packet, uint8_t syndrome = kRemoteAccessNak) {
    TakeSent();
    fabric_.Deliver({&packet, 1});
    const auto sent = TakeSent();
    ASSERT_THAT(sent, SizeIs(1));
    EXPECT_EQ(sent[0].packet.syndrome, syndrome);
    EXPECT_EQ(sent[0].packet.psn, packet.psn);
    EXPECT_EQ(queue_pair_->state(), QueuePairState::kError);
  }

  std::vector<uint8_t> payload_ = Bytes(100, 1);
  std::unique_ptr<MemoryRegion> ground_;
  std::unique_ptr<MemoryWindow> window_;
};

// They add no packet to any batch, so nothing that is sent or answered begins the next turn.
TEST_F(WindowsTest, AnyNumberOfBindsAndInvalidatesAtOnceIsCarriedOutThoughNothingElseHappens) {
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

TEST_F(WindowsTest, AWindowWhoseQueuePairEndedIsBoundAgainThroughAnother) {
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

TEST_F(WindowsTest, APeerInvalidatesWithTheLastPacketOfItsMessage) {
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

TEST_F(WindowsTest, AMessageThatWasAnsweredIsNotCarriedOutAgainAndHurtsNoLaterBinding) {
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

TEST_F(WindowsTest, WithoutAReceiveNothingIsInvalidated) {
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

TEST_F(WindowsTest, AKeyThatIsNoWindowOfThisQueuePairCannotBeHandedBack) {
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
  // What they named still works.
  queue_pair_ = std::move(binder);
  Arrive({WriteTo(0, 0, foreign)});
  EXPECT_EQ(TakeSent().back().packet.syndrome, kAck);
  EXPECT_TRUE(MemoryHolds(0, payload_));
}

TEST_F(WindowsTest, AWindowIsForThePeerOfItsQueuePairOnly) {
  OpenWithWindow();
  MustBind(0, 500, kRemoteWrite);
  auto binder = std::move(queue_pair_);
  queue_pair_ = MakeQueuePair();
  Walk(*queue_pair_);
  ExpectRefused(WriteTo(0, 0, window_->rkey()));
}

TEST_F(WindowsTest, AQueuePairThatWasResetOpensNoOldWindow) {
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

TEST_F(WindowsTest, ARegionThatGoesInTheMiddleOfAWriteEndsIt) {
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

// A busy port keeps answers that point into the window's memory; whoever closes it takes them out again.
TEST_F(WindowsTest, AClosedWindowIsNotReadForAPortThatWasBusy) {
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
      ground_ = *domain_->RegisterMemory(absl::MakeSpan(memory_), kWindowed);
      window_ = *domain_->CreateMemoryWindow();
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

TEST_F(WindowsTest, ABindIsCarriedOutOnceHoweverOftenWhatIsBeforeItIsSent) {
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

TEST_F(WindowsTest, ABadBindFailsWhenItsTurnComesAndAllBehindItIsFlushed) {
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

TEST_F(WindowsTest, AWindowThatIsBoundCannotBeBoundAgain) {
  OpenWithWindow();
  MustBind(0, 100, kRemoteWrite);
  ASSERT_TRUE(PostRequest(BindRequest(2, 200, 100, kRemoteWrite)).ok());
  Run();
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kWindowBind)));
}

TEST_F(WindowsTest, AKeyThatIsNoWindowsCannotBeInvalidated) {
  OpenWithWindow();
  for (const uint32_t rkey : {region_->rkey(), window_->rkey(), uint32_t{0}}) {
    queue_pair_ = MakeQueuePair();
    Walk(*queue_pair_);
    ASSERT_TRUE(PostRequest(InvalidateRequest(2, rkey)).ok());
    Run();
    EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kWindowBind)));
  }
}

TEST_F(WindowsTest, AFencedInvalidateWaitsForEverythingBeforeIt) {
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

TEST_F(WindowsTest, AnInvalidateWithoutAFenceDoesNotWaitForAnswers) {
  OpenWithWindow();
  MustBind(0, 500, kRemoteWrite);
  const uint32_t rkey = window_->rkey();
  Post(Opcode::kSend, 1, Piece(0, 10));
  ASSERT_TRUE(PostRequest(InvalidateRequest(2, rkey)).ok());
  TakeSent();
  ExpectRefused(WriteTo(0, 0, rkey));
}

TEST_F(WindowsTest, ARequestThatMakesNoSenseIsRefusedWhenItIsPosted) {
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

TEST_F(WindowsTest, ASendWithInvalidateNamesTheKeyInItsLastPacket) {
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

TEST_F(WindowsTest, APeersReadThatIsNotFencedEndsWhenItHandsTheKeyBack) {
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

// Whatever a peer sends, it never writes where no window is open for it.
TEST_F(WindowsTest, APeerThatGuessesWritesNowhereElse) {
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
