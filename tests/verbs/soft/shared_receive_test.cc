// Shared receive queues packet by packet: who takes which receive, when its slot is free again, and
// who hears that few are left.
#include <functional>

#include "gmock/gmock.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Op = PacketOpcode;
using Status = CompletionStatus;

// Two queue pairs, queue_pair_ and other_, that share `shared_`; the test is the peer of both.
class SharedReceiveTest : public OneNic {
 protected:
  void OpenShared(uint32_t depth) {
    Open();
    shared_ = *domain_->CreateSharedReceiveQueue(depth, 2);
    queue_pair_options_.shared_receives = shared_.get();
    queue_pair_ = MakeWalked();
    other_ = MakeWalked();
  }
  std::unique_ptr<QueuePair> MakeWalked() {
    auto made = MakeQueuePair();
    Walk(*made);
    return made;
  }
  absl::Status Post(uint64_t id, const Sge& sge) {
    const ReceiveRequest request{id, {&sge, 1}};
    return shared_->PostReceive({&request, 1}).status;
  }
  void MustPost(uint64_t first, uint64_t count) {
    for (uint64_t id = first; id < first + count; ++id) ASSERT_TRUE(Post(id, Piece(id * 1000, 1000)).ok());
  }
  // A request of the peer of `queue_pair`.
  void Arrive(const QueuePair& queue_pair, Packet packet) {
    packet.destination = queue_pair.number();
    fabric_.Deliver({&packet, 1});
    Run();
  }
  Packet WriteWithImm(Op opcode, uint32_t index, absl::Span<const uint8_t> payload, uint32_t total) {
    return To(Request(opcode, index, payload), Remote(500000), region_->rkey(), total);
  }
  void Watch() {
    watch_ = device_->Watch(loop_, [this](const DeviceEventInfo& info) {
      EXPECT_EQ(info.event, DeviceEvent::kReceiveLimit);
      low_.push_back(info.shared_receives);
      if (on_low_) on_low_();
    });
  }

  const std::vector<uint8_t> full_ = Bytes(kMtu, 1);
  const std::vector<uint8_t> few_ = Bytes(20, 9);
  std::unique_ptr<SharedReceiveQueue> shared_;
  std::unique_ptr<QueuePair> other_;
  std::unique_ptr<DeviceWatch> watch_;
  std::vector<const SharedReceiveQueue*> low_;
  std::function<void()> on_low_;
};

TEST_F(SharedReceiveTest, AMessageTakesItsReceiveWhenItBegins) {
  OpenShared(8);
  MustPost(1, 3);
  Arrive(*queue_pair_, Request(Op::kSendFirst, 0, full_));
  Arrive(*other_, Request(Op::kSendOnly, 0, few_));
  auto done = Poll();
  ASSERT_THAT(Outcomes(done), ElementsAre(Pair(2, Status::kSuccess)));
  EXPECT_EQ(done[0].queue_pair_number, other_->number());
  EXPECT_EQ(done[0].byte_count, few_.size());
  Arrive(*queue_pair_, Request(Op::kSendLast, 1, few_));
  done = Poll();
  ASSERT_THAT(Outcomes(done), ElementsAre(Pair(1, Status::kSuccess)));
  EXPECT_EQ(done[0].queue_pair_number, queue_pair_->number());
  EXPECT_EQ(done[0].byte_count, kMtu + few_.size());
  EXPECT_TRUE(MemoryHolds(1000, full_));
  EXPECT_TRUE(MemoryHolds(1000 + kMtu, few_));
  EXPECT_TRUE(MemoryHolds(2000, few_));
}

TEST_F(SharedReceiveTest, ASlotIsFreeAgainWhenItsCompletionWasPolled) {
  OpenShared(2);
  MustPost(1, 2);
  EXPECT_TRUE(absl::IsResourceExhausted(Post(3, Piece(0, 10))));
  Arrive(*queue_pair_, Request(Op::kSendOnly, 0, few_));
  EXPECT_TRUE(absl::IsResourceExhausted(Post(3, Piece(0, 10)))) << "completing is not enough";
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
  EXPECT_TRUE(Post(3, Piece(0, 10)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Post(4, Piece(0, 10))));
}

// Longer than the ring, with messages that end in another order than they began.
TEST_F(SharedReceiveTest, SlotsAreUsedAgainAndAgain) {
  OpenShared(3);
  MustPost(1, 3);
  for (uint32_t round = 0; round < 50; ++round) {
    Arrive(*queue_pair_, Request(Op::kSendFirst, 2 * round, full_));
    Arrive(*other_, Request(Op::kSendOnly, round, few_));
    Arrive(*queue_pair_, Request(Op::kSendLast, 2 * round + 1, few_));
    const auto done = Poll();
    ASSERT_EQ(done.size(), 2u);
    for (const Completion& completion : done) {
      ASSERT_EQ(completion.status, Status::kSuccess);
      ASSERT_TRUE(Post(completion.id, Piece(completion.id * 1000, 1000)).ok());
    }
    ASSERT_TRUE(absl::IsResourceExhausted(Post(9, Piece(0, 10))));
  }
}

TEST_F(SharedReceiveTest, SlotsThatAQueuePairTookAreFreeAgainWhenItGoes) {
  OpenShared(2);
  for (const char* how : {"not polled", "not completed", "not completed, reset"}) {
    SCOPED_TRACE(how);
    auto third = MakeWalked();
    MustPost(1, 2);
    const bool begun = how != std::string("not polled");
    Arrive(*third, Request(begun ? Op::kSendFirst : Op::kSendOnly, 0, begun ? full_ : few_));
    EXPECT_TRUE(absl::IsResourceExhausted(Post(3, Piece(0, 10))));
    if (how == std::string("not completed, reset")) {
      ASSERT_TRUE(third->Modify(QueuePairState::kReset).ok());
    } else {
      third.reset();
    }
    EXPECT_THAT(Poll(), IsEmpty());
    EXPECT_TRUE(Post(3, Piece(0, 1000)).ok());
    EXPECT_TRUE(absl::IsResourceExhausted(Post(4, Piece(0, 10))));
    // Both that are left are met by messages.
    auto fourth = MakeWalked();
    Arrive(*fourth, Request(Op::kSendOnly, 0, few_));
    Arrive(*fourth, Request(Op::kSendOnly, 1, few_));
    EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kSuccess), Pair(3, Status::kSuccess)));
  }
}

// A completion queue as deep as the shared queue is never overrun, whoever goes when.
TEST_F(SharedReceiveTest, AQueuePairThatGoesFreesNoSlotOfOthers) {
  OpenShared(4);
  queue_pair_.reset();
  completions_ = *device_->CreateCompletionQueue(loop_, 4, [] {});
  queue_pair_ = MakeWalked();
  uint32_t next = 0;
  for (const bool completes : {true, false}) {
    for (uint64_t place = 0; place < 4; ++place) {
      SCOPED_TRACE(testing::Message() << (completes ? "completed " : "begun ") << place);
      other_ = MakeWalked();
      MustPost(0, 4);
      for (uint64_t id = 0; id < 4; ++id) {
        if (id != place) {
          Arrive(*queue_pair_, Request(Op::kSendOnly, next++, few_));
        } else {
          Arrive(*other_, Request(completes ? Op::kSendOnly : Op::kSendFirst, 0, completes ? few_ : full_));
        }
      }
      other_.reset();
      ASSERT_TRUE(Post(4, Piece(0, 1000)).ok());
      ASSERT_TRUE(absl::IsResourceExhausted(Post(5, Piece(0, 1000))));
      Arrive(*queue_pair_, Request(Op::kSendOnly, next++, few_));
      ASSERT_EQ(queue_pair_->state(), QueuePairState::kReadyToSend);
      const auto done = Poll();
      ASSERT_EQ(done.size(), 4u);
      for (size_t i = 0; i < 4; ++i) EXPECT_EQ(done[i].id, i < place ? i : i + 1);
    }
  }
  MustPost(0, 4);
  EXPECT_TRUE(absl::IsResourceExhausted(Post(5, Piece(0, 1000))));
}

TEST_F(SharedReceiveTest, AnEmptyQueueMeansNotReadyForMessagesAndForNothingElse) {
  OpenShared(4);
  Arrive(*queue_pair_, Request(Op::kSendOnly, 0, few_));
  EXPECT_TRUE(IsNotReady(TakeSent().back().packet.syndrome));
  Arrive(*other_, WriteWithImm(Op::kWriteOnly, 0, few_, few_.size()));
  EXPECT_EQ(TakeSent().back().packet.syndrome, kAck);
  Arrive(*other_, WriteWithImm(Op::kWriteOnlyWithImm, 1, few_, few_.size()));
  EXPECT_TRUE(IsNotReady(TakeSent().back().packet.syndrome));
  MustPost(1, 1);
  Arrive(*queue_pair_, Request(Op::kSendOnly, 0, few_));
  EXPECT_EQ(TakeSent().back().packet.syndrome, kAck);
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
}

TEST_F(SharedReceiveTest, AWriteTakesItsReceiveAtItsEnd) {
  OpenShared(4);
  MustPost(1, 1);
  Arrive(*queue_pair_, WriteWithImm(Op::kWriteFirst, 0, full_, kMtu + 20));
  Arrive(*other_, Request(Op::kSendOnly, 0, few_));
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
  Arrive(*queue_pair_, Request(Op::kWriteLastWithImm, 1, few_));
  EXPECT_TRUE(IsNotReady(TakeSent().back().packet.syndrome));
  MustPost(2, 1);
  Arrive(*queue_pair_, Request(Op::kWriteLastWithImm, 1, few_));
  const auto done = Poll();
  ASSERT_THAT(Outcomes(done), ElementsAre(Pair(2, Status::kSuccess)));
  EXPECT_EQ(done[0].opcode, CompletionOpcode::kReceiveWriteWithImm);
}

TEST_F(SharedReceiveTest, ARefusedWriteTakesNoReceive) {
  OpenShared(4);
  MustPost(1, 1);
  Packet forged = WriteWithImm(Op::kWriteOnlyWithImm, 0, few_, few_.size());
  forged.rkey += 1;
  Arrive(*queue_pair_, forged);
  EXPECT_EQ(queue_pair_->state(), QueuePairState::kError);
  EXPECT_THAT(Poll(), IsEmpty());
  Arrive(*other_, Request(Op::kSendOnly, 0, few_));
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
}

TEST_F(SharedReceiveTest, ADuplicateTakesNoReceive) {
  OpenShared(4);
  MustPost(1, 2);
  for (int i = 0; i < 3; ++i) Arrive(*queue_pair_, Request(Op::kSendOnly, 0, few_));
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kSuccess)));
  Arrive(*other_, Request(Op::kSendOnly, 0, few_));
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kSuccess)));
}

TEST_F(SharedReceiveTest, AQueuePairThatEndsFlushesOnlyTheReceiveThatItFills) {
  OpenShared(4);
  MustPost(1, 3);
  Arrive(*queue_pair_, Request(Op::kSendFirst, 0, full_));
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kError).ok());
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kFlushed)));
  Arrive(*queue_pair_, Request(Op::kSendLast, 1, few_));
  Arrive(*queue_pair_, Request(Op::kSendOnly, 1, few_));
  EXPECT_THAT(Poll(), IsEmpty()) << "in Error it takes none";
  Arrive(*other_, Request(Op::kSendOnly, 0, few_));
  Arrive(*other_, Request(Op::kSendOnly, 1, few_));
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kSuccess), Pair(3, Status::kSuccess)));
}

TEST_F(SharedReceiveTest, AReceiveThatDoesNotFitEndsTheQueuePairThatTookItAlone) {
  OpenShared(4);
  ASSERT_TRUE(Post(1, Piece(0, 10)).ok());
  ASSERT_TRUE(Post(2, {memory_.data(), 100, region_->lkey() + 1}).ok());
  ASSERT_TRUE(Post(3, Piece(0, 100)).ok());
  Arrive(*queue_pair_, Request(Op::kSendOnly, 0, few_));
  EXPECT_EQ(TakeSent().back().packet.syndrome, kInvalidRequestNak);
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kLocalLength)));
  Arrive(*other_, Request(Op::kSendOnly, 0, few_));
  EXPECT_EQ(TakeSent().back().packet.syndrome, kRemoteOperationNak);
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kLocalProtection)));
  auto third = MakeWalked();
  Arrive(*third, Request(Op::kSendOnly, 0, few_));
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(3, Status::kSuccess)));
}

// Each peer may hold one receive by beginning a message and never ending it; no more.
TEST_F(SharedReceiveTest, APeerThatNeverEndsItsMessageHoldsOneReceive) {
  OpenShared(4);
  MustPost(1, 3);
  Arrive(*queue_pair_, Request(Op::kSendFirst, 0, full_));
  for (uint32_t i = 1; i < 3; ++i) Arrive(*queue_pair_, Request(Op::kSendMiddle, i, full_));
  Arrive(*other_, Request(Op::kSendOnly, 0, few_));
  Arrive(*other_, Request(Op::kSendOnly, 1, few_));
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(2, Status::kSuccess), Pair(3, Status::kSuccess)));
  Arrive(*queue_pair_, Request(Op::kSendFirst, 3, full_));
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kFlushed))) << "a message inside a message";
}

TEST_F(SharedReceiveTest, TheLimitIsReportedOnceWhenAReceiveIsTaken) {
  OpenShared(8);
  Watch();
  MustPost(1, 4);
  ASSERT_TRUE(shared_->Arm(3).ok());
  Arrive(*queue_pair_, Request(Op::kSendOnly, 0, few_));
  EXPECT_THAT(low_, IsEmpty()) << "3 are left";
  Arrive(*other_, Request(Op::kSendFirst, 0, full_));
  EXPECT_THAT(low_, ElementsAre(shared_.get()));
  Arrive(*queue_pair_, Request(Op::kSendOnly, 1, few_));
  EXPECT_EQ(low_.size(), 1u);
  Poll();
  MustPost(5, 1);
  ASSERT_TRUE(shared_->Arm(2).ok());
  ASSERT_TRUE(shared_->Arm(0).ok());
  Arrive(*queue_pair_, Request(Op::kSendOnly, 2, few_));
  EXPECT_EQ(low_.size(), 1u) << "disarmed";
}

TEST_F(SharedReceiveTest, ALimitThatIsReachedAlreadyIsReportedAtOnce) {
  OpenShared(8);
  Watch();
  MustPost(1, 2);
  ASSERT_TRUE(shared_->Arm(3).ok());
  EXPECT_THAT(low_, IsEmpty()) << "not inside the call";
  Run();
  EXPECT_THAT(low_, ElementsAre(shared_.get()));
  EXPECT_TRUE(absl::IsInvalidArgument(shared_->Arm(9))) << "more than it can hold";
}

TEST_F(SharedReceiveTest, AHandlerThatArmsAgainRunsAgainInATaskOfItsOwn) {
  OpenShared(8);
  Watch();
  int deep = 0;
  on_low_ = [&] {
    ASSERT_EQ(deep++, 0);
    if (low_.size() < 3) {
      ASSERT_TRUE(shared_->Arm(3).ok());
    }
    --deep;
  };
  ASSERT_TRUE(shared_->Arm(3).ok());
  Run();
  EXPECT_EQ(low_.size(), 3u);
}

TEST_F(SharedReceiveTest, ADroppedQueueReportsNothing) {
  OpenShared(8);
  auto second = *domain_->CreateSharedReceiveQueue(8, 1);
  Watch();
  ASSERT_TRUE(shared_->Arm(3).ok());
  ASSERT_TRUE(second->Arm(3).ok());
  const SharedReceiveQueue* const first = shared_.get();
  on_low_ = [&] { second.reset(); };
  Run();
  EXPECT_THAT(low_, ElementsAre(first)) << "the handler dropped the second";
}

TEST_F(SharedReceiveTest, DroppingTheQueueEndsItsQueuePairs) {
  OpenShared(4);
  queue_pair_options_.shared_receives = nullptr;
  auto apart = MakeWalked();
  MustPost(1, 2);
  Arrive(*queue_pair_, Request(Op::kSendFirst, 0, full_));
  shared_.reset();
  EXPECT_EQ(queue_pair_->state(), QueuePairState::kError);
  EXPECT_EQ(other_->state(), QueuePairState::kError);
  EXPECT_EQ(apart->state(), QueuePairState::kReadyToSend);
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, Status::kFlushed)));
  const std::vector<uint8_t> before = memory_;
  Arrive(*queue_pair_, Request(Op::kSendLast, 1, few_));
  Arrive(*other_, Request(Op::kSendOnly, 0, few_));
  EXPECT_EQ(memory_, before);
  EXPECT_THAT(Poll(), IsEmpty());
}

TEST_F(SharedReceiveTest, ImpossibleSizesAndForeignObjectsAreRefused) {
  OpenShared(4);
  EXPECT_TRUE(absl::IsInvalidArgument(domain_->CreateSharedReceiveQueue(0, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      domain_->CreateSharedReceiveQueue(device_->limits().max_receive_requests + 1, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(domain_->CreateSharedReceiveQueue(1, device_->limits().max_sges + 1).status()));

  queue_pair_options_.send_queue = queue_pair_options_.receive_queue = completions_.get();
  auto foreign = *device_->CreateProtectionDomain();
  EXPECT_TRUE(absl::IsInvalidArgument(foreign->CreateQueuePair(queue_pair_options_).status())) << "another domain";
  sim::SimLoop loop(scheduler_);
  auto completions = *device_->CreateCompletionQueue(loop, 16, [] {});
  queue_pair_options_.receive_queue = completions.get();
  EXPECT_TRUE(absl::IsInvalidArgument(domain_->CreateQueuePair(queue_pair_options_).status())) << "another loop";

  const Sge pieces[] = {Piece(0, 1), Piece(1, 1), Piece(2, 1)};
  ReceiveRequest request{1, pieces};
  EXPECT_TRUE(absl::IsInvalidArgument(shared_->PostReceive({&request, 1}).status)) << "more sges than agreed";
  request.sges = absl::MakeConstSpan(pieces).first(2);
  EXPECT_TRUE(shared_->PostReceive({&request, 1}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(queue_pair_->PostReceive({&request, 1}).status)) << "it has none of its own";
}

}  // namespace
}  // namespace tokamak::verbs::soft
