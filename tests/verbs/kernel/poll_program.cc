// Extended completion queues: a program goes through what there is (ibv_start_poll, ibv_next_poll)
// until there is no more, ends the round, as ibv_end_poll(3) has it, and begins another.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <ctime>

#include "gtest/gtest.h"
#include "tests/verbs/kernel/loop_pair.h"

namespace tokamak::verbs::kernel {
namespace {

class PollTest : public LoopPair {
 protected:
  ibv_cq* MakeQueue() override {
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = kDepth;
    wanted.channel = channel_;
    wanted.wc_flags = IBV_WC_EX_WITH_BYTE_LEN;
    extended_ = ibv_create_cq_ex(context_, &wanted);
    return extended_ == nullptr ? nullptr : ibv_cq_ex_to_cq(extended_);
  }

  void PostWrite(uint64_t name) {
    ibv_sge from = Own(0, 8);
    ibv_send_wr request{};
    request.wr_id = name;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.sg_list = &from;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = OwnAddress(64);
    request.wr.rdma.rkey = ours_->rkey;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(pairs_[0], &request, &bad), 0);
  }

  int Start() {
    ibv_poll_cq_attr attributes{};
    return ibv_start_poll(extended_, &attributes);
  }
  // Until it has something.
  template <typename Call>
  static void Await(Call call) {
    const time_t last = time(nullptr) + 60;
    int error = ENOENT;
    while (error == ENOENT && time(nullptr) < last) error = call();
    ASSERT_EQ(error, 0);
  }
  void ExpectCompletion(uint64_t name) {
    EXPECT_EQ(extended_->wr_id, name);
    EXPECT_EQ(extended_->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(extended_), IBV_WC_RDMA_WRITE);
  }

  ibv_cq_ex* extended_ = nullptr;
};

// rdma-core#1512: rxe's provider takes one that is not there.
TEST_F(PollTest, NothingFollowsTheLastCompletion) {
  for (uint64_t name = 1; name <= 4 * kDepth; ++name) {
    PostWrite(name);
    Await([&] { return Start(); });
    ExpectCompletion(name);
    ASSERT_EQ(ibv_next_poll(extended_), ENOENT) << name;
    ibv_end_poll(extended_);
    ASSERT_EQ(Start(), ENOENT) << name;
  }
}

TEST_F(PollTest, ARoundFindsCompletionsThatComeMeanwhile) {
  for (uint64_t name = 1; name <= 4 * kDepth; name += 3) {
    PostWrite(name);
    Await([&] { return Start(); });
    ExpectCompletion(name);
    ASSERT_EQ(ibv_next_poll(extended_), ENOENT) << name;
    ASSERT_EQ(ibv_next_poll(extended_), ENOENT) << name;
    PostWrite(name + 1);
    Await([&] { return ibv_next_poll(extended_); });
    ExpectCompletion(name + 1);
    PostWrite(name + 2);
    Await([&] { return ibv_next_poll(extended_); });
    ExpectCompletion(name + 2);
    ASSERT_EQ(ibv_next_poll(extended_), ENOENT) << name;
    ibv_end_poll(extended_);
    ASSERT_EQ(Start(), ENOENT) << name;
  }
}

TEST_F(PollTest, ARoundMayEndBeforeTheLastCompletion) {
  PostWrite(1);
  PostWrite(2);
  Await([&] { return Start(); });
  ExpectCompletion(1);
  ibv_end_poll(extended_);
  Await([&] { return Start(); });
  ExpectCompletion(2);
  ASSERT_EQ(ibv_next_poll(extended_), ENOENT);
  ibv_end_poll(extended_);
  EXPECT_EQ(Start(), ENOENT);
}

}  // namespace
}  // namespace tokamak::verbs::kernel
