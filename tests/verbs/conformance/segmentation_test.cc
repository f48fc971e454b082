// Messages are cut into packets of the path MTU and put together again: every size around the cuts,
// for every MTU.
#include <algorithm>

#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr uint32_t kMtus[] = {256, 512, 1024, 2048, 4096};

std::vector<size_t> SizesAround(size_t mtu) {
  return {0, 1, 2, 3, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 3 * mtu, 7 * mtu + 5, 33 * mtu + 2};
}
size_t LargestAround(size_t mtu) { return SizesAround(mtu).back(); }

class SegmentationTest : public ConformanceTest {
 protected:
  // Runs `body` with a fresh pair for every MTU that the device's port lets through.
  void ForEachMtu(const std::function<void(Pair& pair, uint32_t mtu)>& body, PairOptions options = {}) {
    for (uint32_t mtu : kMtus) {
      if (mtu > limits().active_mtu) continue;
      SCOPED_TRACE(testing::Message() << "path MTU " << mtu);
      options.max_path_mtu = mtu;
      auto pair = Connect(options);
      ASSERT_EQ(pair->active.path_mtu, mtu);
      ASSERT_EQ(pair->passive.path_mtu, mtu);
      body(*pair, mtu);
      if (HasFailure()) return;
    }
  }
};
TOKAMAK_CONFORMANCE(SegmentationTest);

TEST_P(SegmentationTest, SendsOfAllSizesArrive) {
  ForEachMtu([&](Pair& pair, uint32_t mtu) {
    Memory from(*pair.active.domain, LargestAround(mtu), 1), to(*pair.passive.domain, LargestAround(mtu), 2);
    for (size_t size : SizesAround(mtu)) {
      SCOPED_TRACE(testing::Message() << size << " bytes");
      to.Fill(size + 3);
      pair.passive.MustPostReceives({{size, {to.whole()}}});
      pair.active.MustPost({Send(size, {from.piece(0, size)})});
      EXPECT_THAT(pair.passive.AwaitReceives(1), ElementsAre(Received(size, size)));
      EXPECT_THAT(pair.active.AwaitSends(1), ElementsAre(Done(size, CompletionOpcode::kSend)));
      EXPECT_TRUE(Same(to.bytes(0, size), from.bytes(0, size)));
      EXPECT_TRUE(to.Untouched(size, to.size() - size));
    }
  });
}

TEST_P(SegmentationTest, WritesOfAllSizesArrive) {
  ForEachMtu([&](Pair& pair, uint32_t mtu) {
    Memory from(*pair.active.domain, LargestAround(mtu), 1), to(*pair.passive.domain, LargestAround(mtu) + 5, 2);
    for (size_t size : SizesAround(mtu)) {
      SCOPED_TRACE(testing::Message() << size << " bytes");
      to.Fill(size + 3);
      pair.active.MustPost({Write(size, {from.piece(0, size)}, to.remote(5), to.rkey())});
      EXPECT_THAT(pair.active.AwaitSends(1), ElementsAre(Done(size, CompletionOpcode::kWrite)));
      EXPECT_TRUE(to.Untouched(0, 5));
      EXPECT_TRUE(Same(to.bytes(5, size), from.bytes(0, size)));
      EXPECT_TRUE(to.Untouched(5 + size, to.size() - 5 - size));
    }
  });
}

TEST_P(SegmentationTest, WritesWithImmediateOfAllSizesArrive) {
  TOKAMAK_NEEDS(immediate);
  ForEachMtu([&](Pair& pair, uint32_t mtu) {
    Memory from(*pair.active.domain, LargestAround(mtu), 1), to(*pair.passive.domain, LargestAround(mtu), 2);
    for (size_t size : SizesAround(mtu)) {
      SCOPED_TRACE(testing::Message() << size << " bytes");
      to.Fill(size + 3);
      pair.passive.MustPostReceives({{size, {}}});
      pair.active.MustPost({WriteWithImm(size, {from.piece(0, size)}, to.remote(), to.rkey(), 99)});
      EXPECT_THAT(pair.passive.AwaitReceives(1),
                  ElementsAre(ReceivedImm(size, size, 99, CompletionOpcode::kReceiveWriteWithImm)));
      EXPECT_THAT(pair.active.AwaitSends(1), ElementsAre(Done(size, CompletionOpcode::kWrite)));
      EXPECT_TRUE(Same(to.bytes(0, size), from.bytes(0, size)));
      EXPECT_TRUE(to.Untouched(size, to.size() - size));
    }
  });
}

TEST_P(SegmentationTest, SendsWithImmediateOfAllSizesArrive) {
  TOKAMAK_NEEDS(immediate);
  ForEachMtu([&](Pair& pair, uint32_t mtu) {
    Memory from(*pair.active.domain, LargestAround(mtu), 1), to(*pair.passive.domain, LargestAround(mtu), 2);
    for (size_t size : SizesAround(mtu)) {
      SCOPED_TRACE(testing::Message() << size << " bytes");
      to.Fill(size + 3);
      pair.passive.MustPostReceives({{size, {to.piece(0, size)}}});
      pair.active.MustPost({SendWithImm(size, {from.piece(0, size)}, 0xabcdef01)});
      EXPECT_THAT(pair.passive.AwaitReceives(1), ElementsAre(ReceivedImm(size, size, 0xabcdef01)));
      EXPECT_THAT(pair.active.AwaitSends(1), ElementsAre(Done(size, CompletionOpcode::kSend)));
      EXPECT_TRUE(Same(to.bytes(0, size), from.bytes(0, size)));
    }
  });
}

TEST_P(SegmentationTest, ReadsOfAllSizesArrive) {
  ForEachMtu([&](Pair& pair, uint32_t mtu) {
    Memory to(*pair.active.domain, LargestAround(mtu), 1), from(*pair.passive.domain, LargestAround(mtu) + 3, 2);
    for (size_t size : SizesAround(mtu)) {
      SCOPED_TRACE(testing::Message() << size << " bytes");
      to.Fill(size + 3);
      pair.active.MustPost({Read(size, {to.piece(0, size)}, from.remote(3), from.rkey())});
      EXPECT_THAT(pair.active.AwaitSends(1), ElementsAre(Done(size, CompletionOpcode::kRead)));
      EXPECT_TRUE(Same(to.bytes(0, size), from.bytes(3, size)));
      EXPECT_TRUE(to.Untouched(size, to.size() - size));
    }
  });
}

TEST_P(SegmentationTest, PiecesThatEndInsideAPacketAreJoined) {
  const uint32_t pieces = std::min(limits().max_sges, 3u);
  if (pieces < 3) GTEST_SKIP() << "skipped: device lacks Limits::max_sges of 3";
  PairOptions options;
  options.active.max_sges = options.passive.max_sges = 3;
  const auto body = [&](Pair& pair, uint32_t mtu) {
    const size_t size = 4 * mtu;
    Memory from(*pair.active.domain, size, 1), to(*pair.passive.domain, size, 2);
    for (size_t cut : {size_t{1}, size_t{mtu} - 1, size_t{mtu}, size_t{mtu} + 1, 2 * size_t{mtu} + 3}) {
      SCOPED_TRACE(testing::Message() << "cut at " << cut);
      to.Fill(cut + 3);
      const size_t rest = size - cut - 1;
      pair.passive.MustPostReceives({{1, {to.piece(0, rest), to.piece(rest, 1), to.piece(rest + 1, cut)}}});
      pair.active.MustPost({Send(2, {from.piece(0, cut), from.piece(cut, 1), from.piece(cut + 1, rest)})});
      EXPECT_THAT(pair.passive.AwaitReceives(1), ElementsAre(Received(1, size)));
      EXPECT_THAT(pair.active.AwaitSends(1), ElementsAre(Done(2, CompletionOpcode::kSend)));
      EXPECT_TRUE(to.Holds(1));
    }
  };
  ForEachMtu(body, options);
}

TEST_P(SegmentationTest, ManyMessagesOfDifferentSizesInFlightKeepTheirBoundaries) {
  ForEachMtu([&](Pair& pair, uint32_t mtu) {
    const std::vector<size_t> sizes = SizesAround(mtu);
    size_t total = 0;
    for (size_t size : sizes) total += size;
    Memory from(*pair.active.domain, total, 1), to(*pair.passive.domain, total, 2);
    size_t offset = 0;
    std::vector<CompletionMatcher> expected;
    std::vector<Work> batch;
    for (size_t size : sizes) {
      pair.passive.MustPostReceives({{size, {to.piece(offset, size)}}});
      batch.push_back(Send(size, {from.piece(offset, size)}));
      expected.push_back(Received(size, size));
      offset += size;
    }
    pair.active.MustPost(batch);
    EXPECT_THAT(pair.passive.AwaitReceives(sizes.size()), testing::ElementsAreArray(expected));
    EXPECT_TRUE(to.Holds(1));
    EXPECT_EQ(pair.active.AwaitSends(sizes.size()).size(), sizes.size());
  });
}

TEST_P(SegmentationTest, ThePathMtuIsNoLargerThanThePort) {
  auto pair = Connect();
  EXPECT_LE(pair->active.path_mtu, limits().active_mtu);
  EXPECT_EQ(pair->active.path_mtu, pair->passive.path_mtu);
  EXPECT_NE(std::find(std::begin(kMtus), std::end(kMtus), pair->active.path_mtu), std::end(kMtus));
}

}  // namespace
}  // namespace tokamak::verbs::conformance
