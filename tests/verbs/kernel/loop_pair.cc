#include "tests/verbs/kernel/loop_pair.h"

#include <cstring>
#include <ctime>

namespace tokamak::verbs::kernel {

void LoopPair::SetUp() {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  ASSERT_GT(count, 0);
  context_ = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  ASSERT_NE(context_, nullptr);
  domain_ = ibv_alloc_pd(context_);
  channel_ = ibv_create_comp_channel(context_);
  ASSERT_NE(channel_, nullptr);
  queue_ = MakeQueue();
  ASSERT_NE(queue_, nullptr);
  for (ibv_qp*& pair : pairs_) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue_;
    wanted.cap = {8, 8, 2, 2, 0};
    wanted.qp_type = IBV_QPT_RC;
    pair = ibv_create_qp(domain_, &wanted);
    ASSERT_NE(pair, nullptr);
  }
  Connect(pairs_[0], pairs_[1]);
  Connect(pairs_[1], pairs_[0]);
  ours_ = ibv_reg_mr(domain_, own_.data(), own_.size(), kAll);
  ASSERT_NE(ours_, nullptr);
  for (size_t i = 0; i < own_.size(); ++i) own_[i] = static_cast<uint8_t>(i);
}

void LoopPair::TearDown() {
  if (ours_ != nullptr) ibv_dereg_mr(ours_);
  for (ibv_qp* const pair : pairs_) {
    if (pair != nullptr) ibv_destroy_qp(pair);
  }
  if (queue_ != nullptr) ibv_destroy_cq(queue_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
  if (domain_ != nullptr) ibv_dealloc_pd(domain_);
  if (context_ != nullptr) ibv_close_device(context_);
}

ibv_wc_status LoopPair::Run(ibv_wr_opcode opcode, ibv_sge local, uint64_t remote_address, uint32_t rkey) {
  ibv_send_wr request{};
  request.opcode = opcode;
  request.sg_list = &local;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = remote_address;
  request.wr.rdma.rkey = rkey;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request.wr.atomic.remote_addr = remote_address;
    request.wr.atomic.rkey = rkey;
    request.wr.atomic.compare_add = 7;
  }
  return Post(&request);
}

ibv_wc_status LoopPair::Post(ibv_send_wr* request) {
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(pairs_[0], request, &bad), 0);
  ibv_wc completion{};
  const time_t last = time(nullptr) + 60;
  while (ibv_poll_cq(queue_, 1, &completion) == 0 && time(nullptr) < last) {
  }
  EXPECT_LT(time(nullptr), last);
  return completion.status;
}

void LoopPair::ExpectThatItWorks() {
  constexpr int kWrites = 50;  // more than the rings hold
  constexpr size_t kHalf = 128;
  for (int i = 0; i < kWrites; ++i) {
    std::memset(own_.data(), i + 1, kHalf);
    ASSERT_EQ(Run(IBV_WR_RDMA_WRITE, Own(0, kHalf), OwnAddress(kHalf), ours_->rkey), IBV_WC_SUCCESS) << "write " << i;
    ASSERT_EQ(std::memcmp(own_.data(), own_.data() + kHalf, kHalf), 0) << "write " << i;
  }
}

void LoopPair::Connect(ibv_qp* pair, ibv_qp* peer) {
  ibv_qp_attr set{};
  set.qp_state = IBV_QPS_INIT;
  set.port_num = 1;
  set.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  ASSERT_EQ(ibv_modify_qp(pair, &set, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
  set.qp_state = IBV_QPS_RTR;
  set.path_mtu = IBV_MTU_1024;
  set.dest_qp_num = peer->qp_num;
  set.max_dest_rd_atomic = set.max_rd_atomic = 1;
  set.min_rnr_timer = 12;
  set.ah_attr.is_global = 1;
  set.ah_attr.port_num = 1;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &set.ah_attr.grh.dgid), 0);
  ASSERT_EQ(ibv_modify_qp(pair, &set,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
  set.qp_state = IBV_QPS_RTS;
  set.timeout = 14;
  set.retry_cnt = set.rnr_retry = 7;
  ASSERT_EQ(ibv_modify_qp(pair, &set,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                              IBV_QP_MAX_QP_RD_ATOMIC),
            0);
}

}  // namespace tokamak::verbs::kernel
