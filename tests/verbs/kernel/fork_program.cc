// A forked child may do nothing with the devices that its parent has opened, and its parent goes on
// as if there were no child.
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>

#include "gtest/gtest.h"
#include "tests/verbs/kernel/loop_pair.h"

namespace tokamak::verbs::kernel {
namespace {

class ForkTest : public LoopPair {
 protected:
  // Returns the result of `call` in a child, an errno value; -1: the child did not end by itself.
  static int InChild(const std::function<int()>& call) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      _exit(call());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  int PostOne() {
    ibv_sge local = Own(0, 8);
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE;
    request.sg_list = &local;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = OwnAddress(128);
    request.wr.rdma.rkey = ours_->rkey;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(pairs_[0], &request, &bad);
  }
};

TEST_F(ForkTest, AChildsCommandsAreRefusedAsAKernelRefusesThem) {
  const auto error_of = [](const void* made) { return made == nullptr ? errno : 0; };
  const std::function<int()> calls[] = {
      [this] {
        ibv_device_attr attributes;
        return ibv_query_device(context_, &attributes);
      },
      [this] {
        ibv_port_attr attributes;
        return ibv_query_port(context_, 1, &attributes);
      },
      [&] { return error_of(ibv_alloc_pd(context_)); },
      [&] { return error_of(ibv_reg_mr(domain_, own_.data(), own_.size(), kAll)); },
      [&] { return error_of(ibv_create_cq(context_, 4, nullptr, nullptr, 0)); },
      [this] { return ibv_req_notify_cq(queue_, 0); },
      [this] { return PostOne(); },
      [this] { return ibv_destroy_qp(pairs_[0]); },
      [this] { return ibv_destroy_cq(queue_); },
      [this] { return ibv_dereg_mr(ours_); },
      [this] { return ibv_dealloc_pd(domain_); },
  };
  size_t number = 0;
  for (const auto& call : calls) {
    EXPECT_EQ(InChild(call), EACCES) << "call " << number;
    ExpectThatItWorks();
    if (HasFailure()) FAIL() << "after call " << number;
    ++number;
  }
}

TEST_F(ForkTest, AChildDoesNotPollItsParentsCompletions) {
  ASSERT_EQ(PostOne(), 0);
  EXPECT_EQ(InChild([this] {
              ibv_wc completion;
              return ibv_poll_cq(queue_, 1, &completion) < 0 ? EACCES : 0;
            }),
            EACCES);
  ibv_wc completion{};
  while (ibv_poll_cq(queue_, 1, &completion) == 0) {
  }
  EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
  ExpectThatItWorks();
}

TEST_F(ForkTest, AChildsReceivesAreNotItsParents) {
  InChild([this] {
    ibv_sge local = Own(0, 8);
    ibv_recv_wr request{};
    request.sg_list = &local;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(pairs_[1], &request, &bad);
  });
  ibv_sge local = Own(64, 8);
  ibv_recv_wr receive{};
  receive.wr_id = 77;
  receive.sg_list = &local;
  receive.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(pairs_[1], &receive, &bad), 0);
  ibv_sge from = Own(0, 8);
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  send.sg_list = &from;
  send.num_sge = 1;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(ibv_post_send(pairs_[0], &send, &bad_send), 0);
  ibv_wc completion{};
  while (ibv_poll_cq(queue_, 1, &completion) == 0) {
  }
  EXPECT_EQ(completion.wr_id, 77u);
}

TEST_F(ForkTest, AChildThatClosesItsInheritedDescriptorsOpensADeviceOfItsOwn) {
  EXPECT_EQ(InChild([this] {
              if (ibv_close_device(context_) != 0) return 1;
              int count = 0;
              ibv_device** const devices = ibv_get_device_list(&count);
              ibv_context* const own = count > 0 ? ibv_open_device(devices[0]) : nullptr;
              if (own == nullptr) return 2;
              ibv_pd* const domain = ibv_alloc_pd(own);
              if (domain == nullptr) return 3;
              return ibv_dealloc_pd(domain) == 0 && ibv_close_device(own) == 0 ? 0 : 4;
            }),
            0);
  ExpectThatItWorks();
}

TEST_F(ForkTest, AChildsEventChannelOfTheConnectionManagerIsItsParents) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  ASSERT_NE(channel, nullptr);
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
  EXPECT_EQ(InChild([&] {
              rdma_cm_id* other = nullptr;
              return rdma_create_id(channel, &other, nullptr, RDMA_PS_TCP) == 0 ? 0 : errno;
            }),
            EACCES);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  rdma_destroy_event_channel(channel);
}

}  // namespace
}  // namespace tokamak::verbs::kernel
