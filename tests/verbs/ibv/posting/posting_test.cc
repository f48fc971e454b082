#include "lib/verbs/ibv/posting/posting.h"

#include <arpa/inet.h>

#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace tokamak::verbs::ibv {
namespace {

class PostingTest : public testing::Test {
 protected:
  PostingTest() {
    limits.atomics = limits.immediate = limits.memory_windows = true;
    limits.max_read_sges = 1;
    limits.max_message = 1000;
  }

  Sge Piece(uint32_t length) { return {memory, length, 7}; }

  SendRequest Request(Opcode opcode) {
    SendRequest request;
    request.id = 5;
    request.opcode = opcode;
    request.sges = pieces;
    request.remote_address = 4096;
    request.rkey = 9;
    return request;
  }

  absl::Status Check(const SendRequest& request) { return CheckSend(request, limits, bounds); }

  uint8_t memory[64] = {};
  std::vector<Sge> pieces = {Piece(8)};
  Limits limits;
  QueueBounds bounds{2, 32};
  SendBatch batch;
};

TEST_F(PostingTest, OperationsThatTheDeviceLacksAreUnimplemented) {
  limits.atomics = limits.immediate = limits.memory_windows = false;
  for (Opcode opcode : {Opcode::kCompareSwap, Opcode::kFetchAdd, Opcode::kSendWithImm, Opcode::kWriteWithImm,
                        Opcode::kSendWithInvalidate, Opcode::kBindWindow, Opcode::kLocalInvalidate}) {
    EXPECT_TRUE(absl::IsUnimplemented(Check(Request(opcode)))) << static_cast<int>(opcode);
  }
  EXPECT_TRUE(Check(Request(Opcode::kSend)).ok());
}

TEST_F(PostingTest, PiecesAreCounted) {
  pieces = {Piece(1), Piece(1)};
  EXPECT_TRUE(Check(Request(Opcode::kWrite)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Check(Request(Opcode::kRead)))) << "the device reads into one";
  pieces.push_back(Piece(1));
  EXPECT_TRUE(absl::IsInvalidArgument(Check(Request(Opcode::kWrite))));
}

TEST_F(PostingTest, AMessageAboveTheLimitIsRefused) {
  pieces = {Piece(500), Piece(500)};
  EXPECT_TRUE(Check(Request(Opcode::kSend)).ok());
  pieces = {Piece(500), Piece(501)};
  EXPECT_TRUE(absl::IsInvalidArgument(Check(Request(Opcode::kSend))));
  ReceiveRequest receive{1, pieces};
  EXPECT_TRUE(absl::IsInvalidArgument(CheckReceive(receive, limits, bounds)));
}

TEST_F(PostingTest, InlineIsForSendsAndWritesUpToTheAgreedLength) {
  pieces = {Piece(32)};
  SendRequest request = Request(Opcode::kWrite);
  request.flags = kInline;
  EXPECT_TRUE(Check(request).ok());
  pieces = {Piece(33)};
  request.sges = pieces;
  EXPECT_TRUE(absl::IsInvalidArgument(Check(request)));
  pieces = {Piece(8)};
  request = Request(Opcode::kRead);
  request.flags = kInline;
  EXPECT_TRUE(absl::IsInvalidArgument(Check(request)));
}

TEST_F(PostingTest, AnAtomicIsEightAlignedBytesInOnePiece) {
  SendRequest request = Request(Opcode::kFetchAdd);
  EXPECT_TRUE(Check(request).ok());
  request.remote_address = 4097;
  EXPECT_TRUE(absl::IsInvalidArgument(Check(request)));
  pieces = {Piece(4), Piece(4)};
  EXPECT_TRUE(absl::IsInvalidArgument(Check(Request(Opcode::kFetchAdd))));
}

TEST_F(PostingTest, AWindowGivesRemoteRightsOnly) {
  SendRequest request = Request(Opcode::kBindWindow);
  request.sges = {};
  request.bind.access = kRemoteRead;
  EXPECT_TRUE(Check(request).ok());
  request.bind.access = kRemoteRead | kLocalWrite;
  EXPECT_TRUE(absl::IsInvalidArgument(Check(request)));
}

TEST_F(PostingTest, AWriteIsTranslated) {
  SendRequest request = Request(Opcode::kWriteWithImm);
  request.flags = kSignaled | kFence | kSolicited;
  request.immediate = 0x01020304;
  const ibv_send_wr& to = AddSend(request, 77, /*never_none=*/false, &batch);
  EXPECT_EQ(to.wr_id, 77u);
  EXPECT_EQ(to.opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(to.send_flags, static_cast<unsigned>(IBV_SEND_SIGNALED | IBV_SEND_FENCE | IBV_SEND_SOLICITED));
  EXPECT_EQ(to.imm_data, htonl(0x01020304));
  EXPECT_EQ(to.wr.rdma.remote_addr, 4096u);
  EXPECT_EQ(to.wr.rdma.rkey, 9u);
  ASSERT_EQ(to.num_sge, 1);
  EXPECT_EQ(to.sg_list[0].addr, reinterpret_cast<uint64_t>(memory));
  EXPECT_EQ(to.sg_list[0].length, 8u);
  EXPECT_EQ(to.sg_list[0].lkey, 7u);
  EXPECT_EQ(to.next, nullptr);
}

TEST_F(PostingTest, AtomicsHaveTheirOperandsWhereLibibverbsExpectsThem) {
  SendRequest swap = Request(Opcode::kCompareSwap);
  swap.compare = 1;
  swap.swap_or_add = 2;
  const ibv_send_wr& swapped = AddSend(swap, 1, /*never_none=*/false, &batch);
  EXPECT_EQ(swapped.wr.atomic.compare_add, 1u);
  EXPECT_EQ(swapped.wr.atomic.swap, 2u);
  EXPECT_EQ(swapped.wr.atomic.remote_addr, 4096u);
  EXPECT_EQ(swapped.wr.atomic.rkey, 9u);
  SendRequest add = Request(Opcode::kFetchAdd);
  add.swap_or_add = 3;
  EXPECT_EQ(AddSend(add, 2, /*never_none=*/false, &batch).wr.atomic.compare_add, 3u);
}

TEST_F(PostingTest, InvalidatesNameTheirKey) {
  SendRequest request = Request(Opcode::kLocalInvalidate);
  request.sges = {};
  request.rkey = 0x1234;
  EXPECT_EQ(AddSend(request, 1, /*never_none=*/false, &batch).invalidate_rkey, 0x1234u);
  EXPECT_EQ(AddSend(Request(Opcode::kSendWithInvalidate), 2, /*never_none=*/false, &batch).invalidate_rkey, 9u);
}

TEST_F(PostingTest, EmptyPiecesAreSkipped) {
  pieces = {Piece(0), Piece(3), Piece(0)};
  const SendRequest request = Request(Opcode::kSend);
  const ibv_send_wr& to = AddSend(request, 1, /*never_none=*/false, &batch);
  ASSERT_EQ(to.num_sge, 1);
  EXPECT_EQ(to.sg_list[0].length, 3u);
  pieces = {Piece(0)};
  EXPECT_EQ(AddSend(Request(Opcode::kSend), 2, /*never_none=*/false, &batch).num_sge, 0);
}

TEST_F(PostingTest, AnEmptyRequestHasAnEmptyPieceIfTheProviderNeedsOne) {
  pieces = {};
  const SendRequest request = Request(Opcode::kRead);
  const ibv_send_wr& send = AddSend(request, 1, /*never_none=*/true, &batch);
  ASSERT_EQ(send.num_sge, 1);
  EXPECT_EQ(send.sg_list[0].length, 0u);
  ReceiveBatch receives;
  AddReceive({1, {}}, 1, /*never_none=*/false, &receives);
  AddReceive({2, {}}, 2, /*never_none=*/true, &receives);
  EXPECT_EQ(receives.first()->num_sge, 0);
  ASSERT_EQ(receives.first()->next->num_sge, 1);
  EXPECT_EQ(receives.first()->next->sg_list[0].length, 0u);
}

TEST_F(PostingTest, ABatchIsAChainThatEndsWhenItIsFull) {
  size_t count = 0;
  for (; batch.HasRoomFor(1); ++count) AddSend(Request(Opcode::kSend), count, /*never_none=*/false, &batch);
  EXPECT_EQ(count, kBatchRequests);
  size_t chained = 0;
  for (const ibv_send_wr* at = batch.first(); at != nullptr; at = at->next) EXPECT_EQ(at->wr_id, chained++);
  EXPECT_EQ(chained, count);

  batch.Clear();
  pieces.assign(kMaxSges, Piece(1));
  count = 0;
  for (; batch.HasRoomFor(pieces.size()); ++count) AddSend(Request(Opcode::kSend), count, /*never_none=*/false, &batch);
  EXPECT_EQ(count, kBatchSges / kMaxSges);
}

TEST_F(PostingTest, RequestsThatAProviderRefusedAreCounted) {
  for (uint64_t i = 0; i < 4; ++i) AddSend(Request(Opcode::kSend), i, /*never_none=*/false, &batch);
  EXPECT_EQ(batch.Accepted(0, nullptr), 4u);
  EXPECT_EQ(batch.Accepted(ENOMEM, batch.first()), 0u);
  EXPECT_EQ(batch.Accepted(ENOMEM, batch.first()->next->next), 2u);
  EXPECT_EQ(batch.Accepted(ENOTCONN, nullptr), 4u);
}

}  // namespace
}  // namespace tokamak::verbs::ibv
