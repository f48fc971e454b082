// The end of a queue pair: in Error everything that was posted comes back, flushed and in order; a
// peer that is gone is noticed in the time that was agreed.
#include <algorithm>

#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

// As the specification rounds it: 4.096 us times a power of two. (9.7.6.1.3)
base::Duration RoundedUp(base::Duration timeout) {
  base::Duration rounded = base::Nanoseconds(4096) * 2;
  while (rounded < timeout) rounded = rounded * 2;
  return rounded;
}

class ErrorTest : public ConformanceTest {
 protected:
  // Sends to this pair's passive side wait for a receive that does not come, for as long as a test
  // lasts.
  std::unique_ptr<Pair> ConnectUnready() {
    PairOptions options;
    options.active_reliability = options.passive_reliability = ConnectDefaults().reliability;
    options.active_reliability->rnr_delay = options.passive_reliability->rnr_delay = base::Milliseconds(400);
    return Connect(options);
  }

  void ToError(End& end) {
    const absl::Status status = end.queue_pair->Modify(QueuePairState::kError);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(end.state(), QueuePairState::kError);
  }
};
TOKAMAK_CONFORMANCE(ErrorTest);

TEST_P(ErrorTest, ErrorFlushesBothQueuesInOrder) {
  TOKAMAK_NEEDS(acknowledgements);
  auto pair = ConnectUnready();
  End& end = pair->active;
  Memory memory(*end.domain, 100, 1);
  for (uint64_t i = 0; i < 20; ++i) end.MustPostReceives({{100 + i, {memory.whole()}}});
  for (uint64_t i = 0; i < 20; ++i) end.MustPost({Send(i, {memory.whole()})});
  LookOn();
  ToError(end);
  const Completions sends = end.AwaitSends(20);
  for (uint64_t i = 0; i < sends.size(); ++i) EXPECT_THAT(sends[i], Flushed(i));
  const Completions receives = end.AwaitReceives(20);
  for (uint64_t i = 0; i < receives.size(); ++i) EXPECT_THAT(receives[i], Flushed(100 + i));
  LookOn();
  EXPECT_TRUE(PollNow(*end.sends).empty());
  EXPECT_TRUE(PollNow(*end.receives).empty());
}

TEST_P(ErrorTest, UnsignaledRequestsAreFlushedWithACompletion) {
  TOKAMAK_NEEDS(acknowledgements);
  auto pair = ConnectUnready();
  pair->active.MustPost({Send(1, {}).Unsignaled(), Write(2, {}, 0, 0).Unsignaled(), Send(3, {})});
  LookOn();
  ToError(pair->active);
  EXPECT_THAT(pair->active.AwaitSends(3), ElementsAre(Flushed(1), Flushed(2), Flushed(3)));
}

TEST_P(ErrorTest, WhatWasDoneBeforeTheErrorStaysDone) {
  TOKAMAK_NEEDS(acknowledgements);
  auto pair = ConnectUnready();
  pair->active.MustPost({Write(1, {}, 0, 0), Write(2, {}, 0, 0), Send(3, {})});
  LookOn();
  ToError(pair->active);
  EXPECT_THAT(pair->active.AwaitSends(3),
              ElementsAre(Done(1, CompletionOpcode::kWrite), Done(2, CompletionOpcode::kWrite), Flushed(3)));
}

TEST_P(ErrorTest, ReadsInFlightAreFlushed) {
  constexpr size_t kSize = 1 << 20;
  auto pair = Connect();
  Memory to(*pair->active.domain, kSize, 1), from(*pair->passive.domain, kSize, 2);
  pair->active.MustPost({Read(1, {to.whole()}, from.remote(), from.rkey()), Write(2, {}, 0, 0).With(kFence)});
  ToError(pair->active);
  const Completions done = pair->active.AwaitSends(2);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].id, 1u);
  EXPECT_EQ(done[1].id, 2u);
  if (done[0].status == CompletionStatus::kSuccess) return;  // it was faster
  EXPECT_EQ(done[0].status, CompletionStatus::kFlushed);
  EXPECT_THAT(done[1], Flushed(2));
  const std::vector<uint8_t> before(to.bytes().begin(), to.bytes().end());
  LookOn();
  EXPECT_TRUE(Same(to.bytes(), before)) << "a READ went on after its queue pair was in Error";
}

TEST_P(ErrorTest, WhatIsPostedInErrorIsTakenAndFlushed) {
  auto pair = Connect();
  End& end = pair->active;
  ToError(end);
  Memory memory(*end.domain, 100, 1);
  end.MustPost({Send(1, {memory.whole()}), Write(2, {memory.whole()}, 0, 0).Unsignaled()});
  end.MustPost({Read(3, {memory.whole()}, 0, 0)});
  end.MustPostReceives({{4, {memory.whole()}}, {5, {}}});
  EXPECT_THAT(end.AwaitSends(3), ElementsAre(Flushed(1), Flushed(2), Flushed(3)));
  EXPECT_THAT(end.AwaitReceives(2), ElementsAre(Flushed(4), Flushed(5)));
  EXPECT_TRUE(memory.Untouched());
}

TEST_P(ErrorTest, FlushesNameTheirQueuePair) {
  auto pair = Connect();
  ToError(pair->active);
  pair->active.MustPost({Send(1, {})});
  pair->active.MustPostReceives({{2, {}}});
  for (const Completion& completion : pair->active.AwaitSends(1)) {
    EXPECT_EQ(completion.queue_pair_number, pair->active.queue_pair->number());
  }
  for (const Completion& completion : pair->active.AwaitReceives(1)) {
    EXPECT_EQ(completion.queue_pair_number, pair->active.queue_pair->number());
  }
}

TEST_P(ErrorTest, ErrorMayBeAskedForTwice) {
  auto pair = Connect();
  ToError(pair->active);
  ToError(pair->active);
  pair->active.MustPost({Send(1, {})});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Flushed(1)));
}

TEST_P(ErrorTest, AQueuePairThatWasNeverConnectedMayGoToErrorAndFlushes) {
  End end(backend(), 0);
  end.MustPostReceives({{1, {}}, {2, {}}});
  ToError(end);
  EXPECT_THAT(end.AwaitReceives(2), ElementsAre(Flushed(1), Flushed(2)));
}

TEST_P(ErrorTest, AFullQueueFlushesWholly) {
  TOKAMAK_NEEDS(acknowledgements);
  constexpr uint32_t kDepth = 64;
  auto pair = ConnectUnready();
  End& end = pair->active;
  for (uint64_t i = 0; i < kDepth; ++i) end.MustPost({Send(i, {}).Unsignaled()});
  EXPECT_FALSE(end.Post({Send(99, {})}).ok());
  ToError(end);
  const Completions sends = end.AwaitSends(kDepth);
  for (uint64_t i = 0; i < sends.size(); ++i) EXPECT_THAT(sends[i], Flushed(i));
}

TEST_P(ErrorTest, OneQueuePairsErrorLeavesItsNeighboursAlone) {
  auto pair = Connect();
  auto neighbour = Connect();
  ToError(pair->active);
  ToError(pair->passive);
  ExpectWorks(neighbour->active, neighbour->passive);
}

TEST_P(ErrorTest, ThePeerOfAQueuePairInErrorHearsOfIt) {
  TOKAMAK_NEEDS(acknowledgements);
  auto pair = Connect();
  Memory from(*pair->active.domain, 10, 1), to(*pair->passive.domain, 10, 2);
  ToError(pair->passive);
  pair->active.MustPost({Write(1, {from.whole()}, to.remote(), to.rkey()), Write(2, {}, 0, 0)});
  ExpectFault(pair->active, Fault::kPeerInError, 1, {2});
  EXPECT_TRUE(to.Untouched());
}

TEST_P(ErrorTest, APeerThatVanishedIsNoticedInTheComputedTime) {
  for (uint8_t retry_count : {0, 2, 6}) {
    SCOPED_TRACE(testing::Message() << "retry_count " << int{retry_count});
    PairOptions options;
    options.active_reliability = ConnectDefaults().reliability;
    options.active_reliability->retry_count = retry_count;
    // A device waits one time-out at least and four at most. (9.7.6.1.3)
    const base::Duration tries = RoundedUp(options.active_reliability->ack_timeout) * (retry_count + 1);
    const base::Duration least = tries - backend().tick() * (retry_count + 1);
    ExpectTakes(least, tries * 4 + backend().slack(), [&](base::Duration* took) {
      SetUp();  // the world before may have lost a device
      auto pair = Connect(options);
      Memory from(*pair->active.domain, 10, 1), to(*pair->passive.domain, 10, 2);
      if (!backend().Vanish(pair->passive.index)) GTEST_SKIP() << "skipped: backend lacks Backend::Vanish";
      const base::Time start = pair->active.loop.Now();
      pair->active.MustPost({Write(1, {from.whole()}, to.remote(), to.rkey()), Write(2, {}, 0, 0)});
      ExpectFault(pair->active, Fault::kPeerVanished, 1, {2});
      *took = pair->active.loop.Now() - start;
    });
    if (IsSkipped()) return;
  }
}

TEST_P(ErrorTest, AReadOfAPeerThatVanishedFailsToo) {
  auto pair = Connect();
  Memory to(*pair->active.domain, 10000, 1), from(*pair->passive.domain, 10000, 2);
  if (!backend().Vanish(pair->passive.index)) GTEST_SKIP() << "skipped: backend lacks Backend::Vanish";
  pair->active.MustPost({Read(1, {to.whole()}, from.remote(), from.rkey()), Write(2, {}, 0, 0)});
  ExpectFault(pair->active, Fault::kPeerVanished, 1, {2});
}

TEST_P(ErrorTest, APeerThatVanishesInMidTransferIsNoticed) {
  constexpr size_t kSize = 4 << 20;
  auto pair = Connect();
  Memory from(*pair->active.domain, kSize, 1), to(*pair->passive.domain, kSize, 2);
  pair->active.MustPost({Write(0, {from.piece(0, 8)}, to.remote(), to.rkey()),
                         Write(1, {from.whole()}, to.remote(), to.rkey()), Write(2, {}, 0, 0)});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(0, CompletionOpcode::kWrite)));
  if (!backend().Vanish(pair->passive.index)) GTEST_SKIP() << "skipped: backend lacks Backend::Vanish";
  const Completions done = pair->active.AwaitSends(2);
  ASSERT_EQ(done.size(), 2u);
  if (done[0].status == CompletionStatus::kSuccess) return;  // it was faster
  EXPECT_TRUE(backend().Accepts(Fault::kPeerVanished, done[0].status)) << ToString(done[0].status);
  EXPECT_THAT(done[1], Flushed(2));
  EXPECT_EQ(pair->active.state(), QueuePairState::kError);
}

TEST_P(ErrorTest, APeerThatVanishedDoesNotHoldUpTheOthers) {
  if (backend().device_count() < 3) GTEST_SKIP() << "skipped: backend lacks Backend::device_count of 3";
  constexpr size_t kSize = 300000;
  PairOptions to_other;
  to_other.passive_device = 2;
  auto doomed = Connect();
  auto other = Connect(to_other);
  Memory here(*doomed->active.domain, kSize, 1), gone(*doomed->passive.domain, kSize, 2);
  Memory sink(*other->active.domain, kSize, 3), source(*other->passive.domain, kSize, 4);
  if (!backend().Vanish(doomed->passive.index)) GTEST_SKIP() << "skipped: backend lacks Backend::Vanish";
  // Much is asked of the one that is gone, both ways; and meanwhile the other one is read from.
  for (uint64_t i = 0; i < 20; ++i) {
    doomed->active.MustPost({i % 2 == 0 ? Read(i, {here.whole()}, gone.remote(), gone.rkey())
                                        : Write(i, {here.whole()}, gone.remote(), gone.rkey())});
  }
  for (uint64_t i = 0; i < 5; ++i) {
    other->active.MustPost({Read(i, {sink.whole()}, source.remote(), source.rkey())});
    EXPECT_THAT(other->active.AwaitSends(1), ElementsAre(Done(i, CompletionOpcode::kRead)));
    EXPECT_TRUE(sink.Holds(4));
    sink.Fill(3);
  }
  const Completions failed = doomed->active.AwaitSends(20);
  for (uint64_t i = 1; i < failed.size(); ++i) EXPECT_THAT(failed[i], Flushed(i));
}

TEST_P(ErrorTest, AnIdleConnectionDoesNotNoticeThatThePeerVanished) {
  auto pair = Connect();
  pair->active.MustPostReceives({{1, {}}});
  if (!backend().Vanish(pair->passive.index)) GTEST_SKIP() << "skipped: backend lacks Backend::Vanish";
  LookOn();
  EXPECT_EQ(pair->active.state(), QueuePairState::kReadyToSend);
  EXPECT_TRUE(PollNow(*pair->active.receives).empty());
}

TEST_P(ErrorTest, RequestsOfEveryKindAreFlushed) {
  TOKAMAK_NEEDS(acknowledgements);
  auto pair = ConnectUnready();
  End& end = pair->active;
  Memory memory(*end.domain, 8, 1), there(*pair->passive.domain, 8, 2);
  std::vector<Work> batch = {Send(1, {memory.whole()}), Write(2, {memory.whole()}, there.remote(), there.rkey()),
                             Read(3, {memory.whole()}, there.remote(), there.rkey())};
  if (limits().immediate) {
    batch.push_back(SendWithImm(4, {memory.whole()}, 1));
    batch.push_back(WriteWithImm(5, {memory.whole()}, there.remote(), there.rkey(), 1));
  }
  if (limits().atomics) {
    batch.push_back(FetchAdd(6, memory.whole(), there.remote(), there.rkey(), 1));
    batch.push_back(CompareSwap(7, memory.whole(), there.remote(), there.rkey(), 1, 2));
  }
  end.MustPost(batch);
  LookOn();
  ToError(end);
  std::vector<CompletionMatcher> expected;
  for (const Work& work : batch) expected.push_back(Flushed(work.request.id));
  EXPECT_THAT(end.AwaitSends(batch.size()), testing::ElementsAreArray(expected));
  LookOn();
  EXPECT_TRUE(memory.Untouched());
  EXPECT_TRUE(there.Untouched());
}

}  // namespace
}  // namespace tokamak::verbs::conformance
