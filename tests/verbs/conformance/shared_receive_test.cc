// Shared receive queues: many queue pairs draw from one store of receives, and its owner hears when it runs low.
#include <algorithm>

#include "absl/status/status.h"
#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr size_t kSize = 64;

class SharedReceiveTest : public ConformanceTest {
 protected:
  // Two connections into device 1, whose queue pairs share `shared`.
  void Prepare(uint32_t depth) {
    home_ = std::make_unique<End>(backend(), 1);
    auto made = home_->domain->CreateSharedReceiveQueue(depth, 1);
    ASSERT_TRUE(made.ok()) << made.status();
    shared = *std::move(made);
    for (size_t i = 0; i < 2; ++i) {
      senders.push_back(std::make_unique<End>(backend(), 0));
      receivers.push_back(std::make_unique<End>(backend(), 1, EndOptions(), home_.get()));
      QueuePairOptions options;
      options.send_queue = home_->sends.get();
      options.receive_queue = home_->receives.get();
      options.shared_receives = shared.get();
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
  Memory to(*home().domain, 4 * kSize, 2), from(*senders[0]->domain, kSize, 5), other(*senders[1]->domain, kSize, 6);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(PostShared(i, to.piece(i * kSize, kSize)).ok());
  for (uint64_t i = 0; i < 4; ++i) {
    senders[i % 2]->MustPost({Send(i, {i % 2 == 0 ? from.whole() : other.whole()})});
    const Completions received = home().AwaitReceives(1);
    EXPECT_THAT(received, ElementsAre(Received(i, kSize)));
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].queue_pair_number, receivers[i % 2]->queue_pair->number());
    EXPECT_TRUE(Same(to.bytes(i * kSize, kSize), Pattern(i % 2 == 0 ? 5 : 6, kSize)));
  }
}

TEST_P(SharedReceiveTest, AMessageWaitsWhileTheSharedQueueIsEmpty) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  Memory to(*home().domain, kSize, 2), from(*senders[0]->domain, kSize, 5);
  senders[0]->MustPost({Send(1, {from.whole()})});
  EXPECT_TRUE(PollNow(*senders[0]->sends).empty());
  EXPECT_TRUE(PostShared(7, to.whole()).ok());
  EXPECT_THAT(home().AwaitReceives(1), ElementsAre(Received(7, kSize)));
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
  Memory to(*home().domain, kSize, 2), from(*senders[1]->domain, kSize, 5);
  EXPECT_TRUE(PostShared(7, to.whole()).ok());
  EXPECT_TRUE(receivers[0]->queue_pair->Modify(QueuePairState::kError).ok());
  LookOn();
  EXPECT_TRUE(PollNow(*home().receives).empty()) << "receives of a shared queue are not flushed";
  senders[1]->MustPost({Send(1, {from.whole()})});
  EXPECT_THAT(home().AwaitReceives(1), ElementsAre(Received(7, kSize)));
}

TEST_P(SharedReceiveTest, TheOwnerHearsOnceWhenFewAreLeft) {
  TOKAMAK_NEEDS(shared_receive);
  ASSERT_NO_FATAL_FAILURE(Prepare(16));
  int low = 0;
  auto watch = backend().device(1).Watch(
      backend().loop(1), [&](const DeviceEventInfo& info) { low += info.event == DeviceEvent::kReceiveLimit; });
  Memory to(*home().domain, kSize, 2);
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
  Memory to(*home().domain, kSize, 2);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(PostShared(i, to.whole()).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(PostShared(4, to.whole()).status));
}

}  // namespace
}  // namespace tokamak::verbs::conformance
