// Atomics: eight bytes of the peer's memory, changed exactly once however often packets are lost or
// doubled.
#include <algorithm>
#include <cstring>
#include <set>

#include "absl/status/status.h"
#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;

constexpr Access kAtomic = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

uint64_t Load(const Memory& memory, size_t offset = 0) {
  uint64_t value;
  std::memcpy(&value, memory.bytes(offset, sizeof value).data(), sizeof value);
  return value;
}
void Store(Memory& memory, uint64_t value, size_t offset = 0) {
  std::memcpy(memory.data() + offset, &value, sizeof value);
}

CompletionMatcher AtomicDone(uint64_t id, CompletionOpcode opcode) {
  return AllOf(Done(id, opcode), Field("byte_count", &Completion::byte_count, 8u));
}

class AtomicsTest : public ConformanceTest {
 protected:
  PairOptions Options() {
    PairOptions options;
    options.active.remote_access = options.passive.remote_access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    return options;
  }
};
TOKAMAK_CONFORMANCE(AtomicsTest);

TEST_P(AtomicsTest, FetchAddAddsAndReturnsWhatWasThere) {
  TOKAMAK_NEEDS(atomics);
  auto pair = Connect(Options());
  Memory result(*pair->active.domain, 24, 1), word(*pair->passive.domain, 24, 2, kAtomic);
  Store(word, 0x0102030405060708, 8);
  pair->active.MustPost({FetchAdd(5, result.piece(8, 8), word.remote(8), word.rkey(), 0x10)});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(AtomicDone(5, CompletionOpcode::kFetchAdd)));
  EXPECT_EQ(Load(result, 8), 0x0102030405060708u);
  EXPECT_EQ(Load(word, 8), 0x0102030405060718u);
  EXPECT_TRUE(result.Untouched(0, 8));
  EXPECT_TRUE(result.Untouched(16, 8));
  EXPECT_TRUE(word.Untouched(0, 8));
  EXPECT_TRUE(word.Untouched(16, 8));
}

TEST_P(AtomicsTest, FetchAddWrapsAround) {
  TOKAMAK_NEEDS(atomics);
  auto pair = Connect(Options());
  Memory result(*pair->active.domain, 8, 1), word(*pair->passive.domain, 8, 2, kAtomic);
  Store(word, UINT64_MAX - 1);
  pair->active.MustPost({FetchAdd(5, result.whole(), word.remote(), word.rkey(), 5)});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(AtomicDone(5, CompletionOpcode::kFetchAdd)));
  EXPECT_EQ(Load(result), UINT64_MAX - 1);
  EXPECT_EQ(Load(word), 3u);
}

TEST_P(AtomicsTest, CompareSwapSwapsWhereTheValueIsAsExpected) {
  TOKAMAK_NEEDS(atomics);
  auto pair = Connect(Options());
  Memory result(*pair->active.domain, 8, 1), word(*pair->passive.domain, 8, 2, kAtomic);
  Store(word, 0xfedcba9876543210);
  pair->active.MustPost({CompareSwap(5, result.whole(), word.remote(), word.rkey(), 0xfedcba9876543210, 7)});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(AtomicDone(5, CompletionOpcode::kCompareSwap)));
  EXPECT_EQ(Load(result), 0xfedcba9876543210u);
  EXPECT_EQ(Load(word), 7u);
}

TEST_P(AtomicsTest, CompareSwapLeavesAnotherValueAndReturnsIt) {
  TOKAMAK_NEEDS(atomics);
  auto pair = Connect(Options());
  Memory result(*pair->active.domain, 8, 1), word(*pair->passive.domain, 8, 2, kAtomic);
  Store(word, 100);
  pair->active.MustPost({CompareSwap(5, result.whole(), word.remote(), word.rkey(), 101, 7)});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(AtomicDone(5, CompletionOpcode::kCompareSwap)));
  EXPECT_EQ(Load(result), 100u);
  EXPECT_EQ(Load(word), 100u);
}

TEST_P(AtomicsTest, AtomicsOfOneQueuePairRunInTheOrderPosted) {
  TOKAMAK_NEEDS(atomics);
  auto pair = Connect(Options());
  Memory result(*pair->active.domain, 24, 1), word(*pair->passive.domain, 8, 2, kAtomic);
  Store(word, 1);
  pair->active.MustPost({FetchAdd(1, result.piece(0, 8), word.remote(), word.rkey(), 1),
                         CompareSwap(2, result.piece(8, 8), word.remote(), word.rkey(), 2, 50),
                         FetchAdd(3, result.piece(16, 8), word.remote(), word.rkey(), 1)});
  EXPECT_EQ(pair->active.AwaitSends(3).size(), 3u);
  EXPECT_EQ(Load(result, 0), 1u);
  EXPECT_EQ(Load(result, 8), 2u);
  EXPECT_EQ(Load(result, 16), 50u);
  EXPECT_EQ(Load(word), 51u);
}

// More atomics than may be outstanding, so some wait; each addend counts once, each old value is
// seen by one request.
TEST_P(AtomicsTest, EachAtomicHappensExactlyOnce) {
  TOKAMAK_NEEDS(atomics);
  constexpr size_t kCount = 200;
  End active(backend(), 0, Options().active), passive(backend(), 1, Options().passive);
  std::vector<std::unique_ptr<End>> actives, passives;
  for (size_t i = 0; i < 2; ++i) {
    EndOptions deep = Options().active;
    deep.max_send_requests = kCount / 2;
    actives.push_back(std::make_unique<End>(backend(), 0, deep, &active));
    passives.push_back(std::make_unique<End>(backend(), 1, Options().passive, &passive));
    ASSERT_NO_FATAL_FAILURE(Establish(backend(), *actives[i], *passives[i], ConnectDefaults(), ConnectDefaults()));
  }
  Memory results(*active.domain, kCount * 8, 1), word(*passive.domain, 8, 2, kAtomic);
  Store(word, 0);
  for (size_t i = 0; i < kCount; ++i) {
    actives[i % 2]->MustPost({FetchAdd(i, results.piece(i * 8, 8), word.remote(), word.rkey(), 1)});
  }
  for (const Completion& completion : active.AwaitSends(kCount)) {
    EXPECT_THAT(completion, AtomicDone(completion.id, CompletionOpcode::kFetchAdd));
  }
  EXPECT_EQ(Load(word), kCount);
  std::set<uint64_t> seen;
  for (size_t i = 0; i < kCount; ++i) seen.insert(Load(results, i * 8));
  EXPECT_EQ(seen.size(), kCount);
  EXPECT_EQ(*seen.rbegin(), kCount - 1);
}

// A READ that is asked again sees what has changed meanwhile, so what comes after it has to wait
// for it.
TEST_P(AtomicsTest, FencedAtomicsAndReadsKeepTheirOrder) {
  TOKAMAK_NEEDS(atomics);
  constexpr size_t kRounds = 20;
  auto pair = Connect(Options());
  Memory results(*pair->active.domain, kRounds * 16, 1), word(*pair->passive.domain, 8, 2, kAtomic);
  Store(word, 0);
  for (size_t i = 0; i < kRounds; ++i) {
    pair->active.MustPost({FetchAdd(2 * i, results.piece(i * 16, 8), word.remote(), word.rkey(), 1).With(kFence),
                           Read(2 * i + 1, {results.piece(i * 16 + 8, 8)}, word.remote(), word.rkey())});
  }
  const Completions done = pair->active.AwaitSends(2 * kRounds);
  for (size_t i = 0; i < done.size(); ++i) {
    EXPECT_THAT(done[i], AtomicDone(i, i % 2 == 0 ? CompletionOpcode::kFetchAdd : CompletionOpcode::kRead));
  }
  for (size_t i = 0; i < kRounds; ++i) {
    EXPECT_EQ(Load(results, i * 16), i);
    EXPECT_EQ(Load(results, i * 16 + 8), i + 1);
  }
}

TEST_P(AtomicsTest, MoreAtomicsThanMayBeOutstandingWaitTheirTurn) {
  TOKAMAK_NEEDS(atomics);
  constexpr size_t kCount = 40;
  PairOptions options = Options();
  options.active_reliability = options.passive_reliability = ConnectDefaults().reliability;
  options.active_reliability->reads_outstanding = 1;
  auto pair = Connect(options);
  Memory results(*pair->active.domain, kCount * 8, 1), word(*pair->passive.domain, 8, 2, kAtomic);
  Store(word, 0);
  for (size_t i = 0; i < kCount; ++i) {
    pair->active.MustPost({FetchAdd(i, results.piece(i * 8, 8), word.remote(), word.rkey(), 1)});
  }
  const Completions done = pair->active.AwaitSends(kCount);
  for (size_t i = 0; i < done.size(); ++i) EXPECT_THAT(done[i], AtomicDone(i, CompletionOpcode::kFetchAdd));
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(Load(results, i * 8), i);
}

TEST_P(AtomicsTest, AFencedSendCarriesWhatTheAtomicBeforeItReturned) {
  TOKAMAK_NEEDS(atomics);
  auto pair = Connect(Options());
  Memory result(*pair->active.domain, 8, 1);
  Memory word(*pair->passive.domain, 8, 2, kAtomic), inbox(*pair->passive.domain, 8, 3);
  for (uint64_t i = 0; i < 20; ++i) {
    Store(word, 1000 + i);
    pair->passive.MustPostReceives({{i, {inbox.whole()}}});
    pair->active.MustPost({FetchAdd(1, result.whole(), word.remote(), word.rkey(), 7).Unsignaled(),
                           Send(2, {result.whole()}).With(kFence)});
    EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(2, CompletionOpcode::kSend)));
    EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(i, 8)));
    EXPECT_EQ(Load(inbox), 1000 + i);
  }
}

TEST_P(AtomicsTest, TheFirstAndTheLastWordOfARegionMayBeChanged) {
  TOKAMAK_NEEDS(atomics);
  auto pair = Connect(Options());
  Memory results(*pair->active.domain, 16, 1), words(*pair->passive.domain, 64, 2, kAtomic);
  Store(words, 5, 0);
  Store(words, 6, 56);
  pair->active.MustPost({FetchAdd(1, results.piece(0, 8), words.remote(0), words.rkey(), 1),
                         FetchAdd(2, results.piece(8, 8), words.remote(56), words.rkey(), 1)});
  EXPECT_THAT(pair->active.AwaitSends(2),
              ElementsAre(AtomicDone(1, CompletionOpcode::kFetchAdd), AtomicDone(2, CompletionOpcode::kFetchAdd)));
  EXPECT_EQ(Load(words, 0), 6u);
  EXPECT_EQ(Load(words, 56), 7u);
  EXPECT_TRUE(words.Untouched(8, 48));
}

TEST_P(AtomicsTest, AnAtomicsResultIsEightBytesInOnePiece) {
  TOKAMAK_NEEDS(atomics);
  PairOptions options = Options();
  options.active.max_sges = std::min(limits().max_sges, 2u);
  auto pair = Connect(options);
  Memory result(*pair->active.domain, 16, 1), word(*pair->passive.domain, 8, 2, kAtomic);
  for (std::vector<Sge> pieces : std::vector<std::vector<Sge>>{
           {}, {result.piece(0, 4)}, {result.piece(0, 16)}, {result.piece(0, 4), result.piece(4, 4)}}) {
    SCOPED_TRACE(testing::Message() << pieces.size() << " pieces");
    Work work = FetchAdd(1, result.whole(), word.remote(), word.rkey(), 1);
    work.pieces = pieces;
    const PostResult posted = pair->active.Post({work});
    EXPECT_TRUE(absl::IsInvalidArgument(posted.status)) << posted.status;
  }
  LookOn();
  EXPECT_TRUE(word.Untouched());
  ExpectWorks(pair->active, pair->passive);
}

}  // namespace
}  // namespace tokamak::verbs::conformance
