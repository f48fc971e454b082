// Memory that a program takes away below a region: readers and writers get an error, and no process
// is ended.
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "gtest/gtest.h"
#include "tests/verbs/kernel/loop_pair.h"

namespace tokamak::verbs::kernel {
namespace {

class MemoryTest : public LoopPair {
 protected:
  static constexpr size_t kSize = size_t{1} << 20;
  static constexpr uint32_t kLength = 128;

  void TearDown() override {
    if (region_ != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(region_), 0);
    }
    region_ = nullptr;
    LoopPair::TearDown();
    if (mapped_) Unmap();
  }

  void Map(int protection, int flags, int file) {
    memory_ = mmap(nullptr, kSize, protection, flags, file, 0);
    ASSERT_NE(memory_, MAP_FAILED);
    mapped_ = true;
  }
  void Unmap() {
    ASSERT_EQ(munmap(memory_, kSize), 0);
    mapped_ = false;
  }

  void Register(int file) {
    Map(PROT_READ | PROT_WRITE, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file);
    region_ = ibv_reg_mr(domain_, memory_, kSize, kAll);
    ASSERT_NE(region_, nullptr);
  }

  // A new pair of queue pairs, where a request has failed.
  void Begin(int file = -1) {
    TearDown();
    LoopPair::SetUp();
    if (!HasFatalFailure()) Register(file);
  }

  uint64_t Address() const { return reinterpret_cast<uint64_t>(memory_); }

  // A peer reads it, or writes it.
  ibv_wc_status BeRead() { return Run(IBV_WR_RDMA_READ, Own(0, kLength), Address(), region_->rkey); }
  ibv_wc_status BeWritten() { return Run(IBV_WR_RDMA_WRITE, Own(0, kLength), Address(), region_->rkey); }
  ibv_wc_status BeAdded() { return Run(IBV_WR_ATOMIC_FETCH_AND_ADD, Own(0, 8), Address(), region_->rkey); }
  // A request of its own does.
  ibv_wc_status From() {
    return Run(IBV_WR_RDMA_WRITE, {Address(), kLength, region_->lkey}, OwnAddress(128), ours_->rkey);
  }
  ibv_wc_status Into() {
    return Run(IBV_WR_RDMA_READ, {Address(), kLength, region_->lkey}, OwnAddress(128), ours_->rkey);
  }

  void* memory_ = nullptr;
  bool mapped_ = false;
  ibv_mr* region_ = nullptr;
};

TEST_F(MemoryTest, ReadOnlyMemoryIsRegisteredForReadingOnly) {
  Map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  EXPECT_EQ(ibv_reg_mr(domain_, memory_, kSize, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  region_ = ibv_reg_mr(domain_, memory_, kSize, IBV_ACCESS_REMOTE_READ);
  ASSERT_NE(region_, nullptr);
  EXPECT_EQ(BeRead(), IBV_WC_SUCCESS);
}

TEST_F(MemoryTest, UnmappedMemoryIsNotTouched) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Unmap();
  EXPECT_EQ(BeRead(), IBV_WC_REM_ACCESS_ERR);
  ASSERT_NO_FATAL_FAILURE(Begin());
  Unmap();
  EXPECT_EQ(BeWritten(), IBV_WC_REM_ACCESS_ERR);
  ASSERT_NO_FATAL_FAILURE(Begin());
  Unmap();
  EXPECT_EQ(BeAdded(), IBV_WC_REM_ACCESS_ERR);
  ASSERT_NO_FATAL_FAILURE(Begin());
  Unmap();
  EXPECT_EQ(From(), IBV_WC_LOC_PROT_ERR);
  ASSERT_NO_FATAL_FAILURE(Begin());
  Unmap();
  EXPECT_EQ(Into(), IBV_WC_LOC_PROT_ERR);
}

TEST_F(MemoryTest, ProtectedMemoryIsReadAndNotWritten) {
  const auto protect = [this] { ASSERT_EQ(mprotect(memory_, kSize, PROT_READ), 0); };
  ASSERT_NO_FATAL_FAILURE(Begin());
  protect();
  EXPECT_EQ(BeRead(), IBV_WC_SUCCESS);
  EXPECT_EQ(From(), IBV_WC_SUCCESS);
  EXPECT_EQ(BeWritten(), IBV_WC_REM_ACCESS_ERR);
  ASSERT_NO_FATAL_FAILURE(Begin());
  protect();
  EXPECT_EQ(Into(), IBV_WC_LOC_PROT_ERR);
}

TEST_F(MemoryTest, TheTruncatedPartOfAFileIsNotTouched) {
  const int file = memfd_create("cut", MFD_CLOEXEC);
  const auto fill = [file] { ASSERT_EQ(ftruncate(file, kSize), 0); };
  const auto cut = [file] { ASSERT_EQ(ftruncate(file, 0), 0); };
  fill();
  ASSERT_NO_FATAL_FAILURE(Begin(file));
  cut();
  EXPECT_EQ(BeWritten(), IBV_WC_REM_ACCESS_ERR);
  fill();
  ASSERT_NO_FATAL_FAILURE(Begin(file));
  cut();
  EXPECT_EQ(From(), IBV_WC_LOC_PROT_ERR);
  close(file);
}

// A receive, and a program that goes on.
TEST_F(MemoryTest, AMessageIntoGoneMemoryFailsTheReceive) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  ibv_sge into{Address(), kLength, region_->lkey};
  ibv_recv_wr receive{};
  receive.wr_id = 5;
  receive.sg_list = &into;
  receive.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(pairs_[1], &receive, &bad), 0);
  Unmap();
  ibv_sge from = Own(0, kLength);
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  send.sg_list = &from;
  send.num_sge = 1;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(ibv_post_send(pairs_[0], &send, &bad_send), 0);
  for (int completed = 0; completed < 2;) {
    ibv_wc completion{};
    if (ibv_poll_cq(queue_, 1, &completion) == 0) continue;
    ++completed;
    EXPECT_EQ(completion.status, completion.wr_id == 5 ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR);
  }
  ASSERT_NO_FATAL_FAILURE(Begin());
  ExpectThatItWorks();
}

}  // namespace
}  // namespace tokamak::verbs::kernel
