// A message that finds no receive waits and is tried again, in order, as often as agreed and no
// more.
#include <algorithm>

#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr auto kSendDone = CompletionOpcode::kSend;

class RnrTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    TOKAMAK_NEEDS(acknowledgements);
  }
  PairOptions Options(uint8_t rnr_retry_count, base::Duration rnr_delay) {
    PairOptions options;
    options.active_reliability = options.passive_reliability = ConnectDefaults().reliability;
    options.active_reliability->rnr_retry_count = options.passive_reliability->rnr_retry_count = rnr_retry_count;
    options.active_reliability->rnr_delay = options.passive_reliability->rnr_delay = rnr_delay;
    return options;
  }
  // A send that meets no receive until all `retries` are used up, a peer asking for `wish` before
  // each of them, takes `delay` as often.
  void ExpectDelays(int retries, base::Duration wish, base::Duration delay) {
    PairOptions options = Options(static_cast<uint8_t>(retries), wish);
    options.active_reliability->rnr_delay = base::Microseconds(10);  // what we ask of others must not matter
    // Packets that are lost take time as well.
    const base::Duration most = GetParam().lossy ? backend().patience() : delay * retries + backend().slack();
    ExpectTakes(delay * retries, most, [&](base::Duration* took) {
      auto pair = Connect(options);
      const base::Time start = pair->active.loop.Now();
      pair->active.MustPost({Send(1, {})});
      ExpectFault(pair->active, Fault::kNotReady, 1);
      *took = pair->active.loop.Now() - start;
    });
  }
  // Six waits of this outlast LookOn by far.
  base::Duration LongDelay() { return backend().quiet() * 2; }
};
TOKAMAK_CONFORMANCE(RnrTest);

TEST_P(RnrTest, ASendWaitsForItsReceive) {
  auto pair = Connect(Options(kMaxRetryCount, LongDelay()));
  Memory from(*pair->active.domain, 10000, 1), to(*pair->passive.domain, 10000, 2);
  pair->active.MustPost({Send(1, {from.whole()})});
  LookOn();
  EXPECT_TRUE(PollNow(*pair->active.sends).empty());
  EXPECT_TRUE(to.Untouched());
  pair->passive.MustPostReceives({{2, {to.whole()}}});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(2, 10000)));
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, kSendDone)));
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(RnrTest, WhatIsBehindAWaitingSendKeepsItsOrder) {
  auto pair = Connect(Options(kMaxRetryCount, LongDelay()));
  Memory from(*pair->active.domain, 30, 1), to(*pair->passive.domain, 30, 2);
  Memory written(*pair->passive.domain, 10, 3);
  pair->active.MustPost({Send(1, {from.piece(0, 10)}), Write(2, {from.piece(10, 10)}, written.remote(), written.rkey()),
                         Send(3, {from.piece(20, 10)})});
  LookOn();
  EXPECT_TRUE(PollNow(*pair->active.sends).empty());
  EXPECT_TRUE(written.Untouched());
  pair->passive.MustPostReceives({{1, {to.piece(0, 10)}}, {2, {to.piece(20, 10)}}});
  EXPECT_THAT(pair->active.AwaitSends(3),
              ElementsAre(Done(1, kSendDone), Done(2, CompletionOpcode::kWrite), Done(3, kSendDone)));
  EXPECT_THAT(pair->passive.AwaitReceives(2), ElementsAre(Received(1, 10), Received(2, 10)));
  EXPECT_TRUE(Same(to.bytes(0, 10), from.bytes(0, 10)));
  EXPECT_TRUE(Same(to.bytes(20, 10), from.bytes(20, 10)));
  EXPECT_TRUE(Same(written.bytes(), from.bytes(10, 10)));
}

TEST_P(RnrTest, AReceiverThatIsAlwaysLateGetsEveryMessageOnce) {
  constexpr size_t kCount = 10, kBytes = 3000;
  // Late, but with time to spare on a busy machine before the retries are used up.
  auto pair = Connect(Options(kMaxRetryCount, LongDelay()));
  Memory from(*pair->active.domain, kCount * kBytes, 1), to(*pair->passive.domain, kCount * kBytes, 2);
  for (size_t i = 0; i < kCount; ++i) pair->active.MustPost({Send(i, {from.piece(i * kBytes, kBytes)})});
  for (size_t i = 0; i < kCount; ++i) {
    backend().Drive([] { return false; }, backend().quiet() / 4);
    pair->passive.MustPostReceives({{i, {to.piece(i * kBytes, kBytes)}}});
    EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(i, kBytes)));
  }
  EXPECT_EQ(pair->active.AwaitSends(kCount).size(), kCount);
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(RnrTest, AWriteWithImmediateWaitsForItsReceive) {
  TOKAMAK_NEEDS(immediate);
  auto pair = Connect(Options(kMaxRetryCount, LongDelay()));
  Memory from(*pair->active.domain, 10000, 1), to(*pair->passive.domain, 10000, 2);
  pair->active.MustPost({WriteWithImm(1, {from.whole()}, to.remote(), to.rkey(), 6)});
  LookOn();
  EXPECT_TRUE(PollNow(*pair->active.sends).empty());
  pair->passive.MustPostReceives({{2, {}}});
  EXPECT_THAT(pair->passive.AwaitReceives(1),
              ElementsAre(ReceivedImm(2, 10000, 6, CompletionOpcode::kReceiveWriteWithImm)));
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kWrite)));
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(RnrTest, WritesAndReadsNeedNoReceive) {
  auto pair = Connect(Options(0, LongDelay()));
  Memory here(*pair->active.domain, 100, 1), there(*pair->passive.domain, 100, 2);
  pair->active.MustPost({Write(1, {here.piece(0, 50)}, there.remote(), there.rkey()),
                         Read(2, {here.piece(50, 50)}, there.remote(50), there.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(2),
              ElementsAre(Done(1, CompletionOpcode::kWrite), Done(2, CompletionOpcode::kRead)));
}

TEST_P(RnrTest, ASendThatNeverMeetsAReceiveFailsAndTheRestIsFlushed) {
  auto pair = Connect(Options(2, backend().quiet() / 10));
  Memory from(*pair->active.domain, 10, 1);
  pair->active.MustPost({Send(1, {from.whole()}), Send(2, {from.whole()}), Write(3, {}, 0, 0).Unsignaled()});
  ExpectFault(pair->active, Fault::kNotReady, 1, {2, 3});
}

TEST_P(RnrTest, WithoutRetriesTheFirstRefusalIsTheEnd) {
  auto pair = Connect(Options(0, backend().quiet() / 10));
  pair->active.MustPost({Send(1, {})});
  ExpectFault(pair->active, Fault::kNotReady, 1);
}

TEST_P(RnrTest, EveryRetryWaitsAsLongAsThePeerAskedAndThereIsNoneMore) {
  const base::Duration delay = base::Microseconds(20480);  // one that the specification's table has (9.7.5.2.8)
  ExpectDelays(4, delay, delay);
}

TEST_P(RnrTest, TheSideThatWasNotReadyIsNotInError) {
  auto pair = Connect(Options(0, backend().quiet() / 10));
  pair->active.MustPost({Send(1, {})});
  ExpectFault(pair->active, Fault::kNotReady, 1);
  EXPECT_EQ(pair->passive.state(), QueuePairState::kReadyToSend);
}

// The specification's table of delays, as far as a test can wait. A wish between two of them is
// rounded up. (table 45)
TEST_P(RnrTest, ADelayIsTheNextOneOfTheTable) {
  constexpr int64_t kTable[] = {10,   20,   30,   40,   60,   80,   120,   160,   240,   320,   480,   640,  960,
                                1280, 1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440};
  int64_t shorter = 0;
  for (const int64_t entry : kTable) {
    for (const int64_t wish : {shorter + 1, entry}) {
      SCOPED_TRACE(testing::Message() << "asked for " << wish << " us");
      ExpectDelays(1, base::Microseconds(wish), base::Microseconds(entry));
      if (HasFailure()) return;
    }
    shorter = entry;
  }
}

TEST_P(RnrTest, TheWaitsOfOneMessageAreNotChargedToTheNext) {
  auto pair = Connect(Options(1, backend().quiet() * 8));
  for (uint64_t i = 0; i < 5; ++i) {
    pair->active.MustPost({Send(i, {})});
    backend().Drive([] { return false; }, backend().quiet() / 4);
    pair->passive.MustPostReceives({{i, {}}});
    EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(i, kSendDone)));
  }
}

}  // namespace
}  // namespace tokamak::verbs::conformance
