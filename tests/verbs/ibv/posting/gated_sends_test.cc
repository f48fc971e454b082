// Sends to a provider that breaks fences: when they reach it, and in which form.
#include "lib/verbs/ibv/posting/gated_sends.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/verbs/ibv/posting/fake_provider.h"

namespace tokamak::verbs::ibv {
namespace {

class GatedSendsTest : public testing::Test {
 protected:
  static Quirks AllQuirks() {
    Quirks quirks;
    quirks.breaks_fences = quirks.needs_a_piece = quirks.garbles_empty_reads = true;
    quirks.borrows_unsignaled_from = 4096;
    return quirks;
  }

  void Add(Opcode opcode, SendFlags flags = kSignaled, uint32_t length = 8) {
    const Sge piece = {memory_, length, 7};
    SendRequest request;
    request.id = 100 + ring_.posted();
    request.opcode = opcode;
    request.flags = flags;
    request.sges = absl::MakeConstSpan(&piece, 1);
    sends_.Add(request);
  }
  size_t LetThrough() {
    EXPECT_EQ(sends_.LetThrough(provider_.get()), 0);
    return provider_.sends.size();
  }
  static ibv_wc Success(uint64_t wr_id, ibv_wc_opcode opcode) {
    ibv_wc done{};
    done.wr_id = wr_id;
    done.opcode = opcode;
    return done;
  }

  uint8_t memory_[4096] = {};
  WorkRing ring_{40};
  GatedSends sends_{AllQuirks(), {2, 0}, ring_};
  FakeProvider provider_;
};

TEST_F(GatedSendsTest, WhatIsAddedIsPostedAndWaits) {
  Add(Opcode::kWrite);
  EXPECT_EQ(ring_.posted(), 1u);
  EXPECT_EQ(LetThrough(), 0u);
  EXPECT_FALSE(sends_.empty());
  sends_.Open(1);
  EXPECT_EQ(LetThrough(), 1u);
  EXPECT_TRUE(sends_.empty());
}

TEST_F(GatedSendsTest, OnlyTheEndOfAReadLetsOthersPass) {
  sends_.Open(1);
  Add(Opcode::kWrite);
  Add(Opcode::kRead);
  Add(Opcode::kWrite, kSignaled | kFence);
  EXPECT_EQ(LetThrough(), 2u);
  EXPECT_FALSE(sends_.Done(Success(0, IBV_WC_RDMA_WRITE)));
  EXPECT_EQ(LetThrough(), 2u);
  EXPECT_TRUE(sends_.Done(Success(1, IBV_WC_RDMA_READ)));
  EXPECT_EQ(LetThrough(), 3u);
  EXPECT_EQ(provider_.sends[2].send_flags & IBV_SEND_FENCE, 0u) << "it has waited here";
}

TEST_F(GatedSendsTest, UnsignaledReadsAndLongSendsAreSignaledAndKeptFromTheProgram) {
  sends_.Open(4);
  Add(Opcode::kWrite, SendFlags{}, 4095);
  Add(Opcode::kWrite, SendFlags{}, 4096);
  Add(Opcode::kRead, SendFlags{});
  Add(Opcode::kRead, kSignaled);
  ASSERT_EQ(LetThrough(), 4u);
  const bool signaled[] = {false, true, true, true};
  const bool unasked[] = {false, true, true, false};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((provider_.sends[i].send_flags & IBV_SEND_SIGNALED) != 0, signaled[i]) << i;
    EXPECT_EQ(sends_.IsUnasked(Success(i, IBV_WC_RDMA_WRITE)), unasked[i]) << i;
  }
}

TEST_F(GatedSendsTest, AnEmptyReadLeavesAsAWriteWithAnEmptyPiece) {
  sends_.Open(1);
  Add(Opcode::kRead, kSignaled, 0);
  ASSERT_EQ(LetThrough(), 1u);
  EXPECT_EQ(provider_.sends[0].opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(provider_.sends[0].sges, 1);
  EXPECT_EQ(ring_.telling(0), Telling::kRead);
}

TEST_F(GatedSendsTest, ManyPassInBatches) {
  sends_.Open(1);
  for (size_t i = 0; i < kBatchRequests + 3; ++i) Add(Opcode::kWrite);
  LetThrough();
  EXPECT_EQ(provider_.batches, (std::vector<size_t>{kBatchRequests, 3}));
  for (size_t i = 0; i < provider_.sends.size(); ++i) EXPECT_EQ(provider_.sends[i].wr_id, i);
}

TEST_F(GatedSendsTest, ARefusalIsReported) {
  sends_.Open(1);
  Add(Opcode::kWrite);
  Add(Opcode::kWrite);
  provider_.room = 1;
  EXPECT_EQ(sends_.LetThrough(provider_.get()), ENOMEM);
}

TEST_F(GatedSendsTest, ClosedItLetsNothingThrough) {
  sends_.Open(1);
  Add(Opcode::kWrite);
  sends_.Close();
  EXPECT_EQ(LetThrough(), 0u);
  EXPECT_TRUE(sends_.empty());
  EXPECT_EQ(ring_.posted(), 1u) << "to be flushed";
}

}  // namespace
}  // namespace tokamak::verbs::ibv
