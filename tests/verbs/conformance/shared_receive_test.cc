// Shared receive queues: many queue pairs draw from one store of receives, and its owner hears when
// it runs low.
#include <algorithm>

#include "absl/status/status.h"
#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr size_t kReceiveSize = 64;

class SharedReceiveTest : public ConformanceTest {
 protected:
  // Connections into device 1, whose queue pairs share `shared`.
  void Prepare(uint32_t depth, size_t connections = 2) {
    home_ = std::make_unique<End>(backend(), 1);
    auto made = home_->domain->CreateSharedReceiveQueue(depth, 1);
    ASSERT_TRUE(made.ok()) << made.status();
    shared = *std::move(made);
    for (size_t i = 0; i < connections; ++i) {
      senders.push_back(std::make_unique<End>(backend(), 0));
      receivers.push_back(std::make_unique<End>(backend(), 1, EndOptions(), home_.get()));
      QueuePairOptions options;
      options.send_queue = home_->sends.get();
      options.receive_queue = home_->receives.get();
      options.shared_receives = shared.get();
      options.remote_access = kRemoteWrite | kRemoteRead;
      auto queue_pair = home_->domain->CreateQueuePair(options);
      ASSERT_TRUE(queue_pair.ok()) << queue_pair.status();
      receivers.back()->queue_pair = *std::move(queue_pair);
      ASSERT_NO_FATAL_FAILURE(Establish(backend(), *senders[i], *receivers[i], ConnectDefaults(), ConnectDefaults()));
    }
  }
  PostResult PostShared(uint64_t id, Sge piece) {
    ReceiveRequest request{id, absl::MakeConstSpan(&piece, 1)};
    return shared->PostReceive(absl::MakeConstSpan(&request, 1));
  }
  End& home() { return *home_; }

 private:
  std::unique_ptr<End> home_;

 protected:
  std::unique_ptr<SharedReceiveQueue> shared;
  std::vector<std::unique_ptr<End>> senders, receivers;
};
TOKAMAK_CONFORMANCE(SharedReceiveTest);

TEST_P(SharedReceiveTest, QueuePairsDrawFromOneQueueInTheOrderPosted) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  Memory to(*home().domain, 4 * kReceiveSize, 2), from(*senders[0]->domain, kReceiveSize, 5),
      other(*senders[1]->domain, kReceiveSize, 6);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(PostShared(i, to.piece(i * kReceiveSize, kReceiveSize)).ok());
  for (uint64_t i = 0; i < 4; ++i) {
    senders[i % 2]->MustPost({Send(i, {i % 2 == 0 ? from.whole() : other.whole()})});
    const Completions received = home().AwaitReceives(1);
    EXPECT_THAT(received, ElementsAre(Received(i, kReceiveSize)));
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].queue_pair_number, receivers[i % 2]->queue_pair->number());
    EXPECT_TRUE(Same(to.bytes(i * kReceiveSize, kReceiveSize), Pattern(i % 2 == 0 ? 5 : 6, kReceiveSize)));
  }
}

TEST_P(SharedReceiveTest, AMessageWaitsWhileTheSharedQueueIsEmpty) {
  TOKAMAK_NEEDS(acknowledgements);
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  Memory to(*home().domain, kReceiveSize, 2), from(*senders[0]->domain, kReceiveSize, 5);
  senders[0]->MustPost({Send(1, {from.whole()})});
  EXPECT_TRUE(PollNow(*senders[0]->sends).empty());
  EXPECT_TRUE(PostShared(7, to.whole()).ok());
  EXPECT_THAT(home().AwaitReceives(1), ElementsAre(Received(7, kReceiveSize)));
  EXPECT_TRUE(to.Holds(5));
}

TEST_P(SharedReceiveTest, AQueuePairOfASharedQueueTakesNoReceivesOfItsOwn) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  EXPECT_FALSE(receivers[0]->PostReceives({{1, {}}}).ok());
}

TEST_P(SharedReceiveTest, OneEndsErrorLeavesTheSharedReceivesToTheOthers) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  Memory to(*home().domain, kReceiveSize, 2), from(*senders[1]->domain, kReceiveSize, 5);
  EXPECT_TRUE(PostShared(7, to.whole()).ok());
  EXPECT_TRUE(receivers[0]->queue_pair->Modify(QueuePairState::kError).ok());
  LookOn();
  EXPECT_TRUE(PollNow(*home().receives).empty()) << "receives of a shared queue are not flushed";
  senders[1]->MustPost({Send(1, {from.whole()})});
  EXPECT_THAT(home().AwaitReceives(1), ElementsAre(Received(7, kReceiveSize)));
}

TEST_P(SharedReceiveTest, TheOwnerHearsOnceWhenFewAreLeft) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  int low = 0;
  auto watch = backend().device(1).Watch(
      backend().loop(1), [&](const DeviceEventInfo& info) { low += info.event == DeviceEvent::kReceiveLimit; });
  Memory to(*home().domain, kReceiveSize, 2);
  for (uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(PostShared(i, to.whole()).ok());
  EXPECT_TRUE(shared->Arm(5).ok());
  for (uint64_t i = 0; i < 3; ++i) senders[0]->MustPost({Send(i, {})});
  EXPECT_EQ(home().AwaitReceives(3).size(), 3u);
  LookOn();
  EXPECT_EQ(low, 0) << "5 are left, which is not fewer than 5";
  for (uint64_t i = 0; i < 3; ++i) senders[0]->MustPost({Send(i, {})});
  EXPECT_EQ(home().AwaitReceives(3).size(), 3u);
  EXPECT_TRUE(Drive([&] { return low == 1; }));
  LookOn();
  EXPECT_EQ(low, 1);
}

TEST_P(SharedReceiveTest, AFullSharedQueueRefuses) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(4));
  Memory to(*home().domain, kReceiveSize, 2);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(PostShared(i, to.whole()).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(PostShared(4, to.whole()).status));
}

TEST_P(SharedReceiveTest, ASlotIsFreeAgainWhenItsCompletionWasPolled) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(2));
  Memory to(*home().domain, kReceiveSize, 2);
  for (uint64_t i = 0; i < 20; ++i) {
    while (PostShared(i, to.whole()).ok()) {
    }
    senders[i % 2]->MustPost({Send(i, {})});
    EXPECT_EQ(home().AwaitReceives(1).size(), 1u);
    EXPECT_THAT(senders[i % 2]->AwaitSends(1), ElementsAre(Done(i, CompletionOpcode::kSend)));
  }
}

// Messages of many packets from several peers at once: each lands whole in one receive, and each
// receive takes one.
TEST_P(SharedReceiveTest, MessagesOfSeveralPeersAreNotMixed) {
  TOKAMAK_NEEDS(shared_receive);
  constexpr size_t kPeers = 4, kEach = 4, kLong = 20000;
  ASSERT_NO_FATAL_FAILURE(Prepare(kPeers * kEach, kPeers));
  Memory to(*home().domain, kPeers * kEach * kLong, 2);
  for (uint64_t i = 0; i < kPeers * kEach; ++i) EXPECT_TRUE(PostShared(i, to.piece(i * kLong, kLong)).ok());
  std::vector<std::unique_ptr<Memory>> from;
  std::vector<uint32_t> numbers;
  for (size_t peer = 0; peer < kPeers; ++peer) {
    numbers.push_back(receivers[peer]->queue_pair->number());
    std::vector<Work> batch;
    for (size_t i = 0; i < kEach; ++i) {
      from.push_back(std::make_unique<Memory>(*senders[peer]->domain, kLong, 100 * peer + i));
      batch.push_back(Send(i, {from.back()->whole()}));
    }
    senders[peer]->MustPost(batch);
  }
  std::vector<size_t> received(kPeers, 0);
  std::vector<bool> taken(kPeers * kEach, false);
  for (const Completion& completion : home().AwaitReceives(kPeers * kEach)) {
    ASSERT_EQ(completion.status, CompletionStatus::kSuccess);
    const auto peer =
        static_cast<size_t>(std::find(numbers.begin(), numbers.end(), completion.queue_pair_number) - numbers.begin());
    ASSERT_LT(peer, kPeers);
    ASSERT_LT(completion.id, taken.size());
    EXPECT_FALSE(taken[completion.id]) << "receive " << completion.id << " completed twice";
    taken[completion.id] = true;
    EXPECT_EQ(completion.byte_count, kLong);
    EXPECT_TRUE(Same(to.bytes(completion.id * kLong, kLong), Pattern(100 * peer + received[peer]++, kLong)));
  }
}

TEST_P(SharedReceiveTest, AQueueThatStaysEmptyEndsTheConnectionThatNeedsItAlone) {
  TOKAMAK_NEEDS(acknowledgements);
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  Memory to(*home().domain, kReceiveSize, 2), from(*senders[1]->domain, kReceiveSize, 5);
  senders[0]->MustPost({Send(1, {})});
  ExpectFault(*senders[0], Fault::kNotReady, 1);
  senders[1]->MustPost({Write(2, {from.whole()}, to.remote(), to.rkey())});
  EXPECT_THAT(senders[1]->AwaitSends(1), ElementsAre(Done(2, CompletionOpcode::kWrite)));
  EXPECT_TRUE(PostShared(7, to.whole()).ok());
  senders[1]->MustPost({Send(3, {from.whole()})});
  EXPECT_THAT(home().AwaitReceives(1), ElementsAre(Received(7, kReceiveSize)));
}

TEST_P(SharedReceiveTest, WritesWithImmediateTakeReceives) {
  TOKAMAK_NEEDS(shared_receive);
  TOKAMAK_NEEDS(immediate);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  Memory to(*home().domain, kReceiveSize, 2), from(*senders[0]->domain, kReceiveSize, 5);
  for (uint64_t i = 0; i < 2; ++i) EXPECT_TRUE(PostShared(i, {}).ok());
  for (uint64_t i = 0; i < 2; ++i) {
    Memory source(*senders[i]->domain, kReceiveSize, 5);
    senders[i]->MustPost({WriteWithImm(1, {source.whole()}, to.remote(), to.rkey(), 77)});
    EXPECT_THAT(home().AwaitReceives(1),
                ElementsAre(ReceivedImm(i, kReceiveSize, 77, CompletionOpcode::kReceiveWriteWithImm)));
    EXPECT_THAT(senders[i]->AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kWrite)));
  }
}

TEST_P(SharedReceiveTest, AReceiveThatIsTooShortEndsTheConnectionThatTookItAlone) {
  TOKAMAK_NEEDS(acknowledgements);
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  Memory to(*home().domain, kReceiveSize, 2), from(*senders[0]->domain, kReceiveSize, 5),
      other(*senders[1]->domain, kReceiveSize, 6);
  EXPECT_TRUE(PostShared(1, to.piece(0, kReceiveSize - 1)).ok());
  EXPECT_TRUE(PostShared(2, to.whole()).ok());
  senders[0]->MustPost({Send(1, {from.whole()})});
  ExpectFault(*senders[0], Fault::kPeerReceiveShort, 1);
  const Completions failed = home().AwaitReceives(1);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].id, 1u);
  EXPECT_TRUE(backend().Accepts(Fault::kReceiveShort, failed[0].status)) << ToString(failed[0].status);
  senders[1]->MustPost({Send(1, {other.whole()})});
  EXPECT_THAT(home().AwaitReceives(1), ElementsAre(Received(2, kReceiveSize)));
}

TEST_P(SharedReceiveTest, ALimitIsArmedAgainAndAgain) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  int low = 0;
  auto watch = backend().device(1).Watch(backend().loop(1), [&](const DeviceEventInfo& info) {
    if (info.event != DeviceEvent::kReceiveLimit) return;
    EXPECT_EQ(info.shared_receives, shared.get());
    ++low;
  });
  for (int round = 1; round <= 3; ++round) {
    while (PostShared(1, {}).ok()) {
    }
    EXPECT_TRUE(shared->Arm(15).ok());
    for (uint64_t i = 0; i < 2; ++i) senders[i]->MustPost({Send(i, {})});
    EXPECT_EQ(home().AwaitReceives(2).size(), 2u);
    EXPECT_TRUE(Drive([&] { return low == round; }));
    for (auto& sender : senders) EXPECT_EQ(sender->AwaitSends(1).size(), 1u);
  }
}

TEST_P(SharedReceiveTest, QueuePairsGoAndTheirReceivesServeTheOthers) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(2));
  Memory to(*home().domain, kReceiveSize, 2), from(*senders[1]->domain, kReceiveSize, 5);
  for (uint64_t i = 0; i < 2; ++i) EXPECT_TRUE(PostShared(i, to.whole()).ok());
  senders[0]->MustPost({Send(1, {})});
  EXPECT_THAT(senders[0]->AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kSend)));
  // The completion of its receive is not polled, and never will be.
  receivers[0]->connection.reset();
  receivers[0]->queue_pair.reset();
  EXPECT_TRUE(PollNow(*home().receives).empty());
  EXPECT_TRUE(PostShared(2, to.whole()).ok()) << "its slot is free";
  senders[1]->MustPost({Send(1, {from.whole()}), Send(2, {from.whole()})});
  EXPECT_THAT(home().AwaitReceives(2), ElementsAre(Received(1, kReceiveSize), Received(2, kReceiveSize)));
}

TEST_P(SharedReceiveTest, DroppingItWithReceivesPostedTouchesNothingAfter) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  constexpr size_t kLong = 1000000;
  Memory to(*home().domain, kLong, 2), from(*senders[0]->domain, kLong, 5);
  EXPECT_TRUE(PostShared(1, to.whole()).ok());
  EXPECT_TRUE(PostShared(2, to.whole()).ok());
  senders[0]->MustPost({Send(1, {from.whole()})});
  Drive([&] { return to.Peek(0) == from.bytes()[0]; });
  shared.reset();
  to.Fill(9);
  for (auto& receiver : receivers) EXPECT_EQ(receiver->state(), QueuePairState::kError);
  LookOn();
  EXPECT_TRUE(to.Untouched());
  // The receive that was being filled comes back; the message may have been through already.
  const Completions done = PollNow(*home().receives);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].id, 1u);
}

TEST_P(SharedReceiveTest, QueuePairsOfOneQueueAreOfOneDomain) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  End other(backend(), 1);
  QueuePairOptions options;
  options.send_queue = other.sends.get();
  options.receive_queue = other.receives.get();
  options.shared_receives = shared.get();
  EXPECT_TRUE(absl::IsInvalidArgument(other.domain->CreateQueuePair(options).status()));
}

}  // namespace
}  // namespace tokamak::verbs::conformance
