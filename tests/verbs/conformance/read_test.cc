// One-sided READ: the peer's bytes come here, without the peer's doing, and as many at once as both
// sides agreed.
#include <algorithm>

#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;

constexpr auto kWriteDone = CompletionOpcode::kWrite;

CompletionMatcher ReadDone(uint64_t id, uint32_t bytes) {
  return AllOf(Done(id, CompletionOpcode::kRead), Field("byte_count", &Completion::byte_count, bytes));
}

// Reads the peer's bytes again and again, and now and then writes what it has read to another place
// there, fenced.
class FencedReader final {
 public:
  FencedReader(End& end, End& peer, uint64_t seed)
      : end_(end),
        seed_(seed),
        to_(*end.domain, kSize, 0),
        from_(*peer.domain, kSize, seed),
        back_(*peer.domain, kSize, 0) {}

  void Post(uint64_t id) {
    end_.MustPost({IsWrite(id) ? Write(id, {to_.whole()}, back_.remote(), back_.rkey()).With(kFence)
                               : Read(id, {to_.whole()}, from_.remote(), from_.rkey())});
  }

  // The requests from 1 on.
  void ExpectDone(uint64_t count) {
    const Completions done = end_.AwaitSends(count);
    ASSERT_EQ(done.size(), count);
    for (uint64_t id = 1; id <= count; ++id) {
      EXPECT_THAT(done[id - 1], IsWrite(id) ? Done(id, kWriteDone) : ReadDone(id, kSize));
    }
    EXPECT_TRUE(back_.Holds(seed_));
  }

 private:
  static constexpr size_t kSize = 4000;

  static bool IsWrite(uint64_t id) { return id % 6 == 0; }

  End& end_;
  const uint64_t seed_;
  Memory to_, from_, back_;
};

class ReadTest : public ConformanceTest {};
TOKAMAK_CONFORMANCE(ReadTest);

TEST_P(ReadTest, AReadFetchesThePeersBytes) {
  auto pair = Connect();
  Memory to(*pair->active.domain, 3000, 1), from(*pair->passive.domain, 3000, 2);
  pair->active.MustPost({Read(5, {to.whole()}, from.remote(), from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(ReadDone(5, 3000)));
  EXPECT_TRUE(to.Holds(2));
  EXPECT_TRUE(from.Untouched());
}

TEST_P(ReadTest, AReadIsNotNoticedByThePeer) {
  auto pair = Connect();
  Memory to(*pair->active.domain, 100, 1), from(*pair->passive.domain, 100, 2), sink(*pair->passive.domain, 100, 3);
  pair->passive.MustPostReceives({{1, {sink.whole()}}});
  pair->active.MustPost({Read(5, {to.whole()}, from.remote(), from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(ReadDone(5, 100)));
  LookOn();
  EXPECT_TRUE(PollNow(*pair->passive.receives).empty());
  EXPECT_TRUE(PollNow(*pair->passive.sends).empty());
  EXPECT_TRUE(sink.Untouched());
}

TEST_P(ReadTest, AReadFillsItsSinkAndNothingElse) {
  auto pair = Connect();
  Memory to(*pair->active.domain, 20000, 1), from(*pair->passive.domain, 20000, 2);
  pair->active.MustPost({Read(5, {to.piece(7001, 5000)}, from.remote(333), from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(ReadDone(5, 5000)));
  EXPECT_TRUE(Same(to.bytes(7001, 5000), from.bytes(333, 5000)));
  EXPECT_TRUE(to.Untouched(0, 7001));
  EXPECT_TRUE(to.Untouched(12001, 20000 - 12001));
}

TEST_P(ReadTest, AReadIsScatteredOverPieces) {
  const uint32_t pieces = std::min({limits().max_sges, limits().max_read_sges, 4u});
  if (pieces < 2) GTEST_SKIP() << "skipped: device lacks Limits::max_read_sges of 2";
  PairOptions options;
  options.active.max_sges = pieces;
  auto pair = Connect(options);
  Memory to(*pair->active.domain, 4 * 1501, 1), from(*pair->passive.domain, 4 * 1501, 2);
  std::vector<Sge> scatter;
  for (size_t i = pieces; i-- > 0;) scatter.push_back(to.piece(i * 1501, 1501));
  pair->active.MustPost({Read(1, scatter, from.remote(), from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(ReadDone(1, pieces * 1501)));
  for (size_t i = 0; i < pieces; ++i) {
    EXPECT_TRUE(Same(to.bytes((pieces - 1 - i) * 1501, 1501), from.bytes(i * 1501, 1501))) << "piece " << i;
  }
  EXPECT_TRUE(to.Untouched(pieces * 1501, to.size() - pieces * 1501));
}

TEST_P(ReadTest, AReadOfNothingTouchesNothingAndNeedsNoKey) {
  auto pair = Connect();
  Memory from(*pair->passive.domain, 100, 2);
  pair->active.MustPost({Read(1, {}, from.remote(), from.rkey()), Read(2, {}, 0, 0)});
  EXPECT_THAT(pair->active.AwaitSends(2), ElementsAre(ReadDone(1, 0), ReadDone(2, 0)));
}

// Whatever was in its place of the queue before, and though the peer has other bytes to send.
TEST_P(ReadTest, ReadsOfNothingAmongOthersBringNothing) {
  constexpr size_t kRounds = 10, kSize = 6000;
  PairOptions options;
  options.active.max_send_requests = options.passive.max_send_requests = 4;
  auto pair = Connect(options);
  Memory source(*pair->active.domain, kSize, 1), to(*pair->active.domain, kSize, 2);
  Memory from(*pair->passive.domain, kSize, 3), back(*pair->passive.domain, kSize, 4);
  for (size_t i = 0; i < kRounds; ++i) {
    pair->active.MustPost({Write(1, {source.whole()}, back.remote(), back.rkey()),
                           Read(2, {to.whole()}, from.remote(), from.rkey()), Read(3, {}, from.remote(), from.rkey()),
                           Read(4, {}, 0, 0)});
    pair->passive.MustPost({Write(5, {from.piece(0, 100)}, to.remote(), to.rkey()), Read(6, {}, 0, 0)});
    EXPECT_THAT(pair->active.AwaitSends(4),
                ElementsAre(Done(1, kWriteDone), ReadDone(2, kSize), ReadDone(3, 0), ReadDone(4, 0)));
    EXPECT_THAT(pair->passive.AwaitSends(2), ElementsAre(Done(5, kWriteDone), ReadDone(6, 0)));
  }
  EXPECT_TRUE(source.Untouched());
  EXPECT_TRUE(from.Untouched());
  EXPECT_TRUE(to.Holds(3));
  EXPECT_TRUE(back.Holds(1));
}

TEST_P(ReadTest, MoreReadsThanMayBeOutstandingWaitTheirTurn) {
  constexpr size_t kCount = 40, kSize = 3000;
  for (uint8_t depth : {1, 2, 16}) {
    SCOPED_TRACE(testing::Message() << "reads_outstanding " << int{depth});
    PairOptions options;
    options.active_reliability = options.passive_reliability = ConnectDefaults().reliability;
    options.active_reliability->reads_outstanding = std::min(depth, options.active_reliability->reads_outstanding);
    auto pair = Connect(options);
    Memory to(*pair->active.domain, kCount * kSize, 1), from(*pair->passive.domain, kCount * kSize, 2);
    for (size_t i = 0; i < kCount; ++i) {
      pair->active.MustPost({Read(i, {to.piece(i * kSize, kSize)}, from.remote(i * kSize), from.rkey())});
    }
    const Completions done = pair->active.AwaitSends(kCount);
    for (size_t i = 0; i < done.size(); ++i) EXPECT_THAT(done[i], ReadDone(i, kSize));
    EXPECT_TRUE(to.Holds(2));
  }
}

TEST_P(ReadTest, ThePeersReadsServedBoundsWhatTheActiveSideAsksAtOnce) {
  constexpr size_t kCount = 20, kSize = 3000;
  PairOptions options;
  options.passive_reliability = ConnectDefaults().reliability;
  options.passive_reliability->reads_served = 1;
  auto pair = Connect(options);
  Memory to(*pair->active.domain, kCount * kSize, 1), from(*pair->passive.domain, kCount * kSize, 2);
  for (size_t i = 0; i < kCount; ++i) {
    pair->active.MustPost({Read(i, {to.piece(i * kSize, kSize)}, from.remote(i * kSize), from.rkey())});
  }
  const Completions done = pair->active.AwaitSends(kCount);
  for (size_t i = 0; i < done.size(); ++i) EXPECT_THAT(done[i], ReadDone(i, kSize));
  EXPECT_TRUE(to.Holds(2));
}

TEST_P(ReadTest, TheActivesReadsServedBoundsWhatThePassiveSideAsksAtOnce) {
  constexpr size_t kCount = 20, kSize = 3000;
  PairOptions options;
  options.active_reliability = ConnectDefaults().reliability;
  options.active_reliability->reads_served = 1;
  auto pair = Connect(options);
  Memory from(*pair->active.domain, kCount * kSize, 2), to(*pair->passive.domain, kCount * kSize, 1);
  for (size_t i = 0; i < kCount; ++i) {
    pair->passive.MustPost({Read(i, {to.piece(i * kSize, kSize)}, from.remote(i * kSize), from.rkey())});
  }
  const Completions done = pair->passive.AwaitSends(kCount);
  for (size_t i = 0; i < done.size(); ++i) EXPECT_THAT(done[i], ReadDone(i, kSize));
  EXPECT_TRUE(to.Holds(2));
}

TEST_P(ReadTest, AReadSeesTheWritesBeforeIt) {
  constexpr size_t kRounds = 20, kSize = 6000;
  auto pair = Connect();
  Memory from(*pair->active.domain, kRounds * kSize, 1), back(*pair->active.domain, kSize, 3);
  Memory there(*pair->passive.domain, kSize, 2);
  for (size_t i = 0; i < kRounds; ++i) {
    pair->active.MustPost({Write(1, {from.piece(i * kSize, kSize)}, there.remote(), there.rkey()),
                           Read(2, {back.whole()}, there.remote(), there.rkey())});
    EXPECT_THAT(pair->active.AwaitSends(2), ElementsAre(Done(1, kWriteDone), ReadDone(2, kSize)));
    EXPECT_TRUE(Same(back.bytes(), from.bytes(i * kSize, kSize)));
  }
}

TEST_P(ReadTest, AFencedRequestSendsWhatTheReadsBeforeItBrought) {
  constexpr size_t kSize = 20000;
  auto pair = Connect();
  Memory middle(*pair->active.domain, kSize, 1);
  Memory from(*pair->passive.domain, kSize, 2), to(*pair->passive.domain, kSize, 3);
  pair->active.MustPost({Read(1, {middle.whole()}, from.remote(), from.rkey()),
                         Write(2, {middle.whole()}, to.remote(), to.rkey()).With(kFence)});
  EXPECT_THAT(pair->active.AwaitSends(2), ElementsAre(ReadDone(1, kSize), Done(2, kWriteDone)));
  EXPECT_TRUE(to.Holds(2));
}

TEST_P(ReadTest, AFencedWriteDoesNotOvertakeTheReadBeforeIt) {
  constexpr size_t kSize = 20000;
  auto pair = Connect();
  Memory news(*pair->active.domain, kSize, 1), old(*pair->active.domain, kSize, 2);
  Memory there(*pair->passive.domain, kSize, 3);
  pair->active.MustPost({Read(1, {old.whole()}, there.remote(), there.rkey()),
                         Write(2, {news.whole()}, there.remote(), there.rkey()).With(kFence)});
  EXPECT_THAT(pair->active.AwaitSends(2), ElementsAre(ReadDone(1, kSize), Done(2, kWriteDone)));
  EXPECT_TRUE(old.Holds(3));
  EXPECT_TRUE(there.Holds(1));
}

// Each side's fence waits for answers that the other's fence must not hold up.
TEST_P(ReadTest, BothSidesFenceBehindTheirReads) {
  constexpr uint64_t kCount = 60;
  PairOptions options;
  options.active.max_send_requests = options.passive.max_send_requests = kCount;
  auto pair = Connect(options);
  FencedReader active(pair->active, pair->passive, 10), passive(pair->passive, pair->active, 20);
  for (uint64_t id = 1; id <= kCount; ++id) {
    active.Post(id);
    passive.Post(id);
  }
  active.ExpectDone(kCount);
  passive.ExpectDone(kCount);
}

TEST_P(ReadTest, AReadOfSeveralMegabytesArrives) {
  constexpr size_t kSize = (4 << 20) + 12345;
  auto pair = Connect();
  Memory to(*pair->active.domain, kSize, 1), from(*pair->passive.domain, kSize, 2);
  pair->active.MustPost({Read(1, {to.whole()}, from.remote(), from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(ReadDone(1, kSize)));
  EXPECT_TRUE(to.Holds(2));
}

TEST_P(ReadTest, BothSidesReadAtOnce) {
  constexpr size_t kSize = 300000;
  auto pair = Connect();
  Memory a_from(*pair->active.domain, kSize, 1), b_from(*pair->passive.domain, kSize, 2);
  Memory a_to(*pair->active.domain, kSize, 3), b_to(*pair->passive.domain, kSize, 4);
  pair->active.MustPost({Read(1, {a_to.whole()}, b_from.remote(), b_from.rkey())});
  pair->passive.MustPost({Read(2, {b_to.whole()}, a_from.remote(), a_from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(ReadDone(1, kSize)));
  EXPECT_THAT(pair->passive.AwaitSends(1), ElementsAre(ReadDone(2, kSize)));
  EXPECT_TRUE(a_to.Holds(2));
  EXPECT_TRUE(b_to.Holds(1));
}

TEST_P(ReadTest, ARegionThatMayOnlyBeReadIsGoodEnoughToReadFrom) {
  auto pair = Connect();
  Memory to(*pair->active.domain, 500, 1), from(*pair->passive.domain, 500, 2, kRemoteRead);
  pair->active.MustPost({Read(1, {to.whole()}, from.remote(), from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(ReadDone(1, 500)));
  EXPECT_TRUE(to.Holds(2));
}

TEST_P(ReadTest, TheFirstAndTheLastByteOfARegionMayBeRead) {
  auto pair = Connect();
  Memory to(*pair->active.domain, 2, 1), from(*pair->passive.domain, 1000, 2);
  pair->active.MustPost({Read(1, {to.piece(0, 1)}, from.remote(0), from.rkey()),
                         Read(2, {to.piece(1, 1)}, from.remote(999), from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(2), ElementsAre(ReadDone(1, 1), ReadDone(2, 1)));
  EXPECT_TRUE(Same(to.bytes(0, 1), from.bytes(0, 1)));
  EXPECT_TRUE(Same(to.bytes(1, 1), from.bytes(999, 1)));
}

}  // namespace
}  // namespace tokamak::verbs::conformance
