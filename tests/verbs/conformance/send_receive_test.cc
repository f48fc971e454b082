// Two-sided messages: a SEND meets the oldest posted receive of the peer, in order, once, byte for
// byte.
#include <algorithm>
#include <numeric>

#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr auto kSent = CompletionOpcode::kSend;

class SendReceiveTest : public ConformanceTest {};
TOKAMAK_CONFORMANCE(SendReceiveTest);

TEST_P(SendReceiveTest, ASendArrivesInThePostedReceive) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 1000, 1), to(*pair->passive.domain, 1000, 2);
  pair->passive.MustPostReceives({{7, {to.whole()}}});
  pair->active.MustPost({Send(3, {from.whole()})});

  const Completions received = pair->passive.AwaitReceives(1);
  EXPECT_THAT(received, ElementsAre(Received(7, 1000)));
  EXPECT_TRUE(to.Holds(1));
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(3, kSent)));
  EXPECT_TRUE(from.Untouched());
}

TEST_P(SendReceiveTest, ThePassiveSideSendsAsWell) {
  auto pair = Connect();
  ExpectWorks(pair->active, pair->passive);
}

TEST_P(SendReceiveTest, ACompletionNamesItsQueuePair) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 8, 1), to(*pair->passive.domain, 8, 2);
  pair->passive.MustPostReceives({{1, {to.whole()}}});
  pair->active.MustPost({Send(1, {from.whole()})});
  const Completions received = pair->passive.AwaitReceives(1);
  const Completions sent = pair->active.AwaitSends(1);
  ASSERT_EQ(received.size() + sent.size(), 2u);
  EXPECT_EQ(received[0].queue_pair_number, pair->passive.queue_pair->number());
  EXPECT_EQ(sent[0].queue_pair_number, pair->active.queue_pair->number());
}

TEST_P(SendReceiveTest, ReceivesAreUsedInTheOrderPosted) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 300, 1), to(*pair->passive.domain, 300, 2);
  pair->passive.MustPostReceives({{1, {to.piece(200, 100)}}, {2, {to.piece(0, 100)}}, {3, {to.piece(100, 100)}}});
  pair->active.MustPost(
      {Send(11, {from.piece(0, 100)}), Send(12, {from.piece(100, 50)}), Send(13, {from.piece(200, 100)})});

  EXPECT_THAT(pair->passive.AwaitReceives(3), ElementsAre(Received(1, 100), Received(2, 50), Received(3, 100)));
  EXPECT_TRUE(Same(to.bytes(200, 100), from.bytes(0, 100)));
  EXPECT_TRUE(Same(to.bytes(0, 50), from.bytes(100, 50)));
  EXPECT_TRUE(Same(to.bytes(100, 100), from.bytes(200, 100)));
}

TEST_P(SendReceiveTest, AHundredSendsArriveOnceAndInTheOrderPosted) {
  constexpr size_t kCount = 100, kSize = 100;
  PairOptions options;
  options.active.max_send_requests = kCount;
  options.passive.max_receive_requests = kCount;
  auto pair = Connect(options);
  Memory from(*pair->active.domain, kCount * kSize, 1), to(*pair->passive.domain, kCount * kSize, 2);
  for (size_t i = 0; i < kCount; ++i) pair->passive.MustPostReceives({{i, {to.piece(i * kSize, kSize)}}});
  for (size_t i = 0; i < kCount; ++i) pair->active.MustPost({Send(i, {from.piece(i * kSize, kSize)})});

  const Completions received = pair->passive.AwaitReceives(kCount);
  for (size_t i = 0; i < received.size(); ++i) EXPECT_THAT(received[i], Received(i, kSize));
  const Completions sent = pair->active.AwaitSends(kCount);
  for (size_t i = 0; i < sent.size(); ++i) EXPECT_THAT(sent[i], Done(i, kSent));
  EXPECT_TRUE(to.Holds(1));
  LookOn();
  EXPECT_TRUE(PollNow(*pair->passive.receives).empty());
  EXPECT_TRUE(PollNow(*pair->active.sends).empty());
}

TEST_P(SendReceiveTest, ASendOfNothingCompletesAReceiveWithoutMemory) {
  auto pair = Connect();
  pair->passive.MustPostReceives({{1, {}}});
  pair->active.MustPost({Send(2, {})});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(1, 0)));
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(2, kSent)));
}

TEST_P(SendReceiveTest, AShortMessageLeavesTheRestOfTheReceiveAsItWas) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 10, 1), to(*pair->passive.domain, 5000, 2);
  pair->passive.MustPostReceives({{1, {to.whole()}}});
  pair->active.MustPost({Send(2, {from.whole()})});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(1, 10)));
  EXPECT_TRUE(Same(to.bytes(0, 10), from.bytes()));
  EXPECT_TRUE(to.Untouched(10, 4990));
}

TEST_P(SendReceiveTest, AMessageOfNothingLeavesTheReceiveAsItWas) {
  auto pair = Connect();
  Memory to(*pair->passive.domain, 100, 2);
  pair->passive.MustPostReceives({{1, {to.whole()}}});
  pair->active.MustPost({Send(2, {})});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(1, 0)));
  EXPECT_TRUE(to.Untouched());
}

TEST_P(SendReceiveTest, ImmediateDataArrivesWithItsMessage) {
  TOKAMAK_NEEDS(immediate);
  auto pair = Connect();
  Memory from(*pair->active.domain, 30, 1), to(*pair->passive.domain, 30, 2);
  pair->passive.MustPostReceives({{1, {to.piece(0, 10)}}, {2, {to.piece(10, 10)}}, {3, {}}, {4, {to.piece(20, 10)}}});
  pair->active.MustPost({SendWithImm(11, {from.piece(0, 10)}, 0x01020304), SendWithImm(12, {from.piece(10, 10)}, 0),
                         SendWithImm(13, {}, 0xffffffff), Send(14, {from.piece(20, 10)})});
  EXPECT_THAT(pair->passive.AwaitReceives(4), ElementsAre(ReceivedImm(1, 10, 0x01020304), ReceivedImm(2, 10, 0),
                                                          ReceivedImm(3, 0, 0xffffffff), Received(4, 10)));
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(SendReceiveTest, AMessageIsGatheredFromPiecesAndScatteredOverOthers) {
  const uint32_t pieces = std::min(limits().max_sges, 5u);
  if (pieces < 2) GTEST_SKIP() << "skipped: device lacks Limits::max_sges of 2";
  PairOptions options;
  options.active.max_sges = options.passive.max_sges = pieces;
  auto pair = Connect(options);
  constexpr size_t kSize = 6000;
  Memory from(*pair->active.domain, kSize, 1), to(*pair->passive.domain, kSize, 2);

  // Sent back to front in pieces of 1111 bytes and a rest, received in pieces of 977 bytes and a
  // rest.
  std::vector<uint8_t> message;
  std::vector<Sge> gather, scatter;
  for (size_t i = 0, sum = 0; i < pieces; ++i) {
    const size_t length = i + 1 < pieces ? 1111 : kSize - sum;
    const size_t offset = kSize - sum - length;
    gather.push_back(from.piece(offset, length));
    const auto bytes = from.bytes(offset, length);
    message.insert(message.end(), bytes.begin(), bytes.end());
    sum += length;
  }
  for (size_t i = 0, sum = 0; i < pieces; ++i) {
    const size_t length = i + 1 < pieces ? 977 : kSize - sum;
    scatter.push_back(to.piece(sum, length));
    sum += length;
  }
  pair->passive.MustPostReceives({{1, scatter}});
  pair->active.MustPost({Send(2, gather)});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(1, kSize)));
  EXPECT_TRUE(Same(to.bytes(), message));
}

TEST_P(SendReceiveTest, PiecesOfNoLengthAreEmpty) {
  if (limits().max_sges < 3) GTEST_SKIP() << "skipped: device lacks Limits::max_sges of 3";
  PairOptions options;
  options.active.max_sges = options.passive.max_sges = 3;
  auto pair = Connect(options);
  Memory from(*pair->active.domain, 100, 1), to(*pair->passive.domain, 100, 2);
  pair->passive.MustPostReceives({{1, {to.piece(0, 0), to.piece(0, 60), to.piece(60, 40)}}, {2, {to.piece(0, 0)}}});
  pair->active.MustPost(
      {Send(3, {from.piece(0, 30), from.piece(99, 0), from.piece(30, 70)}), Send(4, {from.piece(0, 0)})});
  EXPECT_THAT(pair->passive.AwaitReceives(2), ElementsAre(Received(1, 100), Received(2, 0)));
  EXPECT_THAT(pair->active.AwaitSends(2), ElementsAre(Done(3, kSent), Done(4, kSent)));
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(SendReceiveTest, BothSidesSendAtOnce) {
  constexpr size_t kCount = 50, kSize = 2000;
  auto pair = Connect();
  End* ends[] = {&pair->active, &pair->passive};
  std::vector<std::unique_ptr<Memory>> from, to;
  for (size_t e = 0; e < 2; ++e) {
    from.push_back(std::make_unique<Memory>(*ends[e]->domain, kCount * kSize, 10 + e));
    to.push_back(std::make_unique<Memory>(*ends[e]->domain, kCount * kSize, 20 + e));
    for (size_t i = 0; i < kCount; ++i) ends[e]->MustPostReceives({{i, {to[e]->piece(i * kSize, kSize)}}});
  }
  for (size_t i = 0; i < kCount; ++i) {
    for (size_t e = 0; e < 2; ++e) ends[e]->MustPost({Send(i, {from[e]->piece(i * kSize, kSize)})});
  }
  for (size_t e = 0; e < 2; ++e) {
    const Completions received = ends[e]->AwaitReceives(kCount);
    for (size_t i = 0; i < received.size(); ++i) EXPECT_THAT(received[i], Received(i, kSize));
    EXPECT_EQ(ends[e]->AwaitSends(kCount).size(), kCount);
    EXPECT_TRUE(to[e]->Holds(11 - e));
  }
}

TEST_P(SendReceiveTest, TwoQueuePairsOfOneDeviceReachEachOther) {
  PairOptions options;
  options.passive_device = options.active_device;
  auto pair = Connect(options);
  ExpectWorks(pair->active, pair->passive);
}

TEST_P(SendReceiveTest, OneDeviceTalksToTwoOthers) {
  if (backend().device_count() < 3) GTEST_SKIP() << "skipped: backend lacks Backend::device_count of 3";
  PairOptions to_first, to_second;
  to_second.passive_device = 2;
  auto first = Connect(to_first);
  auto second = Connect(to_second);
  ExpectWorks(first->active, first->passive);
  ExpectWorks(second->active, second->passive);
  ExpectWorks(first->passive, first->active);
}

TEST_P(SendReceiveTest, AReceiveMayBePostedBeforeTheConnectionIsMade) {
  PairOptions options;
  Pair pair(backend(), options);
  Memory from(*pair.active.domain, 100, 1), to(*pair.passive.domain, 100, 2);
  pair.passive.MustPostReceives({{1, {to.whole()}}});
  ASSERT_NO_FATAL_FAILURE(Establish(backend(), pair.active, pair.passive, ConnectDefaults(), ConnectDefaults()));
  pair.active.MustPost({Send(2, {from.whole()})});
  EXPECT_THAT(pair.passive.AwaitReceives(1), ElementsAre(Received(1, 100)));
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(SendReceiveTest, ARegionThatMayOnlyBeReadLocallyIsGoodEnoughToSendFrom) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 100, 1, kLocalRead), to(*pair->passive.domain, 100, 2, kLocalWrite);
  pair->passive.MustPostReceives({{1, {to.whole()}}});
  pair->active.MustPost({Send(2, {from.whole()})});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(1, 100)));
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(SendReceiveTest, QueuePairsOfOneDeviceDoNotMixTheirMessages) {
  constexpr size_t kPairs = 8, kMessages = 10, kSize = 64;
  End active(backend(), 0), passive(backend(), 1);
  std::vector<std::unique_ptr<End>> actives, passives;
  for (size_t i = 0; i < kPairs; ++i) {
    actives.push_back(std::make_unique<End>(backend(), 0, EndOptions(), &active));
    passives.push_back(std::make_unique<End>(backend(), 1, EndOptions(), &passive));
    ASSERT_NO_FATAL_FAILURE(Establish(backend(), *actives[i], *passives[i], ConnectDefaults(), ConnectDefaults()));
  }
  constexpr size_t kTotal = kPairs * kMessages;
  Memory from(*active.domain, kTotal * kSize, 1), to(*passive.domain, kTotal * kSize, 2);
  for (size_t m = 0; m < kMessages; ++m) {
    for (size_t p = 0; p < kPairs; ++p) {
      const size_t i = p * kMessages + m;
      passives[p]->MustPostReceives({{i, {to.piece(i * kSize, kSize)}}});
    }
  }
  for (size_t m = 0; m < kMessages; ++m) {
    for (size_t p = 0; p < kPairs; ++p) {
      const size_t i = p * kMessages + m;
      actives[p]->MustPost({Send(i, {from.piece(i * kSize, kSize)})});
    }
  }
  for (const Completion& completion : passive.AwaitReceives(kTotal)) {
    EXPECT_THAT(completion, Received(completion.id, kSize));
    ASSERT_LT(completion.id, kTotal);
    EXPECT_EQ(completion.queue_pair_number, passives[completion.id / kMessages]->queue_pair->number());
  }
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(SendReceiveTest, AMessageOfAsManyPiecesAsTheDeviceHasArrives) {
  const uint32_t pieces = limits().max_sges;
  constexpr size_t kPiece = 301;
  PairOptions options;
  options.active.max_sges = options.passive.max_sges = pieces;
  auto pair = Connect(options);
  const size_t size = pieces * kPiece;
  Memory from(*pair->active.domain, size, 1), to(*pair->passive.domain, size, 2);
  std::vector<Sge> gather, scatter;
  for (size_t i = 0; i < pieces; ++i) {
    gather.push_back(from.piece(i * kPiece, kPiece));
    scatter.push_back(to.piece(i * kPiece, kPiece));
  }
  pair->passive.MustPostReceives({{1, scatter}});
  pair->active.MustPost({Send(2, gather)});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(1, size)));
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(2, kSent)));
  EXPECT_TRUE(to.Holds(1));
}

}  // namespace
}  // namespace tokamak::verbs::conformance
