// One-sided WRITE: bytes appear in the peer's memory, in order, without the peer's doing.
#include <algorithm>

#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr auto kWriteOpcode = CompletionOpcode::kWrite;
constexpr auto kImmediate = CompletionOpcode::kReceiveWriteWithImm;

class WriteTest : public ConformanceTest {};
TOKAMAK_CONFORMANCE(WriteTest);

TEST_P(WriteTest, AWritePutsBytesIntoThePeersMemory) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 3000, 1), to(*pair->passive.domain, 3000, 2);
  pair->active.MustPost({Write(5, {from.whole()}, to.remote(), to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(5, kWriteOpcode)));
  EXPECT_TRUE(to.Holds(1));
  EXPECT_TRUE(from.Untouched());
}

TEST_P(WriteTest, AWriteIsNotNoticedByThePeer) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 100, 1), to(*pair->passive.domain, 100, 2), sink(*pair->passive.domain, 100, 3);
  pair->passive.MustPostReceives({{1, {sink.whole()}}});
  pair->passive.Arm(*pair->passive.receives);
  pair->active.MustPost({Write(5, {from.whole()}, to.remote(), to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(5, kWriteOpcode)));
  LookOn();
  EXPECT_TRUE(PollNow(*pair->passive.receives).empty());
  EXPECT_TRUE(PollNow(*pair->passive.sends).empty());
  EXPECT_TRUE(sink.Untouched());
}

TEST_P(WriteTest, AWriteTouchesItsRangeAndNothingElse) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 5000, 1), to(*pair->passive.domain, 20000, 2);
  pair->active.MustPost({Write(5, {from.whole()}, to.remote(7001), to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(5, kWriteOpcode)));
  EXPECT_TRUE(Same(to.bytes(7001, 5000), from.bytes()));
  EXPECT_TRUE(to.Untouched(0, 7001));
  EXPECT_TRUE(to.Untouched(12001, 20000 - 12001));
}

TEST_P(WriteTest, TheFirstAndTheLastByteOfARegionMayBeWritten) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 2, 1), to(*pair->passive.domain, 999, 2);
  pair->active.MustPost(
      {Write(1, {from.piece(0, 1)}, to.remote(0), to.rkey()), Write(2, {from.piece(1, 1)}, to.remote(998), to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(2), ElementsAre(Done(1, kWriteOpcode), Done(2, kWriteOpcode)));
  EXPECT_TRUE(Same(to.bytes(0, 1), from.bytes(0, 1)));
  EXPECT_TRUE(Same(to.bytes(998, 1), from.bytes(1, 1)));
  EXPECT_TRUE(to.Untouched(1, 997));
}

TEST_P(WriteTest, OfManyWritesToOnePlaceTheLastStays) {
  constexpr size_t kCount = 60, kSize = 2500;
  auto pair = Connect();
  Memory from(*pair->active.domain, kCount * kSize, 1), to(*pair->passive.domain, kSize, 2);
  for (size_t i = 0; i < kCount; ++i) {
    pair->active.MustPost({Write(i, {from.piece(i * kSize, kSize)}, to.remote(), to.rkey())});
  }
  const Completions written = pair->active.AwaitSends(kCount);
  for (size_t i = 0; i < written.size(); ++i) EXPECT_THAT(written[i], Done(i, kWriteOpcode));
  EXPECT_TRUE(Same(to.bytes(), from.bytes((kCount - 1) * kSize, kSize)));
}

TEST_P(WriteTest, WhenASendArrivesTheWritesBeforeItAreThere) {
  constexpr size_t kRounds = 20, kSize = 9000;
  auto pair = Connect();
  Memory from(*pair->active.domain, kRounds * kSize, 1), to(*pair->passive.domain, kRounds * kSize, 2);
  Memory bell(*pair->passive.domain, 1, 3);
  for (size_t i = 0; i < kRounds; ++i) {
    pair->passive.MustPostReceives({{i, {bell.whole()}}});
    pair->active.MustPost(
        {Write(1, {from.piece(i * kSize, kSize)}, to.remote(i * kSize), to.rkey()), Send(2, {from.piece(0, 1)})});
    EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(i, 1)));
    EXPECT_TRUE(Same(to.bytes(i * kSize, kSize), from.bytes(i * kSize, kSize)));
    EXPECT_EQ(pair->active.AwaitSends(2).size(), 2u);
  }
}

TEST_P(WriteTest, AWriteOfNothingTouchesNothingAndNeedsNoKey) {
  auto pair = Connect();
  Memory to(*pair->passive.domain, 100, 2);
  pair->active.MustPost({Write(1, {}, to.remote(), to.rkey()), Write(2, {}, 0, 0)});
  EXPECT_THAT(pair->active.AwaitSends(2), ElementsAre(Done(1, kWriteOpcode), Done(2, kWriteOpcode)));
  EXPECT_TRUE(to.Untouched());
}

TEST_P(WriteTest, AWriteIsGatheredFromPieces) {
  const uint32_t pieces = std::min(limits().max_sges, 4u);
  if (pieces < 2) GTEST_SKIP() << "skipped: device lacks Limits::max_sges of 2";
  PairOptions options;
  options.active.max_sges = pieces;
  auto pair = Connect(options);
  Memory from(*pair->active.domain, 4 * 1501, 1), to(*pair->passive.domain, 4 * 1501, 2);
  std::vector<Sge> gather;
  std::vector<uint8_t> message;
  for (size_t i = pieces; i-- > 0;) {
    gather.push_back(from.piece(i * 1501, 1501));
    const auto bytes = from.bytes(i * 1501, 1501);
    message.insert(message.end(), bytes.begin(), bytes.end());
  }
  pair->active.MustPost({Write(1, gather, to.remote(), to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, kWriteOpcode)));
  EXPECT_TRUE(Same(to.bytes(0, message.size()), message));
  EXPECT_TRUE(to.Untouched(message.size(), to.size() - message.size()));
}

TEST_P(WriteTest, AWriteOfSeveralMegabytesArrives) {
  constexpr size_t kSize = (4 << 20) + 12345;
  auto pair = Connect();
  Memory from(*pair->active.domain, kSize, 1), to(*pair->passive.domain, kSize, 2);
  pair->active.MustPost({Write(1, {from.whole()}, to.remote(), to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, kWriteOpcode)));
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(WriteTest, BothSidesWriteAtOnce) {
  constexpr size_t kSize = 300000;
  auto pair = Connect();
  Memory a_from(*pair->active.domain, kSize, 1), b_from(*pair->passive.domain, kSize, 2);
  Memory a_to(*pair->active.domain, kSize, 3), b_to(*pair->passive.domain, kSize, 4);
  pair->active.MustPost({Write(1, {a_from.whole()}, b_to.remote(), b_to.rkey())});
  pair->passive.MustPost({Write(2, {b_from.whole()}, a_to.remote(), a_to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, kWriteOpcode)));
  EXPECT_THAT(pair->passive.AwaitSends(1), ElementsAre(Done(2, kWriteOpcode)));
  EXPECT_TRUE(b_to.Holds(1));
  EXPECT_TRUE(a_to.Holds(2));
}

TEST_P(WriteTest, AWriteWithImmediateTakesAReceiveAndLeavesItsMemoryAlone) {
  TOKAMAK_NEEDS(immediate);
  auto pair = Connect();
  Memory from(*pair->active.domain, 7000, 1), to(*pair->passive.domain, 7000, 2), sink(*pair->passive.domain, 100, 3);
  pair->passive.MustPostReceives({{1, {sink.whole()}}});
  pair->active.MustPost({WriteWithImm(5, {from.whole()}, to.remote(), to.rkey(), 0xdeadbeef)});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(ReceivedImm(1, 7000, 0xdeadbeef, kImmediate)));
  EXPECT_TRUE(to.Holds(1));
  EXPECT_TRUE(sink.Untouched());
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(5, kWriteOpcode)));
}

TEST_P(WriteTest, AWriteWithImmediateOfNothingDeliversTheImmediate) {
  TOKAMAK_NEEDS(immediate);
  auto pair = Connect();
  pair->passive.MustPostReceives({{1, {}}});
  pair->active.MustPost({WriteWithImm(5, {}, 0, 0, 77)});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(ReceivedImm(1, 0, 77, kImmediate)));
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(5, kWriteOpcode)));
}

TEST_P(WriteTest, WhenAnImmediateArrivesAllWritesBeforeItAreThere) {
  TOKAMAK_NEEDS(immediate);
  constexpr size_t kCount = 30, kSize = 5000;
  auto pair = Connect();
  Memory from(*pair->active.domain, kCount * kSize, 1), to(*pair->passive.domain, kCount * kSize, 2);
  pair->passive.MustPostReceives({{1, {}}});
  for (size_t i = 0; i < kCount; ++i) {
    const Sge piece = from.piece(i * kSize, kSize);
    const uint64_t remote = to.remote(i * kSize);
    pair->active.MustPost(
        {i + 1 < kCount ? Write(i, {piece}, remote, to.rkey()) : WriteWithImm(i, {piece}, remote, to.rkey(), 1)});
  }
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(ReceivedImm(1, kSize, 1, kImmediate)));
  EXPECT_TRUE(to.Holds(1));
  EXPECT_EQ(pair->active.AwaitSends(kCount).size(), kCount);
}

TEST_P(WriteTest, SendsAndImmediatesTakeReceivesInTheOrderPosted) {
  TOKAMAK_NEEDS(immediate);
  auto pair = Connect();
  Memory from(*pair->active.domain, 40, 1), to(*pair->passive.domain, 40, 2), sink(*pair->passive.domain, 40, 3);
  for (uint64_t i = 0; i < 4; ++i) pair->passive.MustPostReceives({{i, {sink.piece(10 * i, 10)}}});
  pair->active.MustPost({Send(1, {from.piece(0, 10)}), WriteWithImm(2, {from.piece(10, 10)}, to.remote(), to.rkey(), 8),
                         SendWithImm(3, {from.piece(20, 10)}, 9),
                         WriteWithImm(4, {from.piece(30, 10)}, to.remote(10), to.rkey(), 10)});
  EXPECT_THAT(pair->passive.AwaitReceives(4), ElementsAre(Received(0, 10), ReceivedImm(1, 10, 8, kImmediate),
                                                          ReceivedImm(2, 10, 9), ReceivedImm(3, 10, 10, kImmediate)));
  EXPECT_TRUE(Same(sink.bytes(0, 10), from.bytes(0, 10)));
  EXPECT_TRUE(sink.Untouched(10, 10));
  EXPECT_TRUE(Same(sink.bytes(20, 10), from.bytes(20, 10)));
  EXPECT_TRUE(sink.Untouched(30, 10));
}

TEST_P(WriteTest, AnImmediateOfZeroIsDeliveredToo) {
  TOKAMAK_NEEDS(immediate);
  auto pair = Connect();
  Memory from(*pair->active.domain, 10000, 1), to(*pair->passive.domain, 10000, 2);
  pair->passive.MustPostReceives({{1, {}}, {2, {}}});
  pair->active.MustPost({WriteWithImm(1, {from.piece(0, 8)}, to.remote(), to.rkey(), 0),
                         WriteWithImm(2, {from.whole()}, to.remote(), to.rkey(), 0)});
  EXPECT_THAT(pair->passive.AwaitReceives(2),
              ElementsAre(ReceivedImm(1, 8, 0, CompletionOpcode::kReceiveWriteWithImm),
                          ReceivedImm(2, 10000, 0, CompletionOpcode::kReceiveWriteWithImm)));
  EXPECT_TRUE(to.Holds(1));
}

}  // namespace
}  // namespace tokamak::verbs::conformance
