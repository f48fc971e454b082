// Regions whose bytes requests name by other numbers than their addresses: ibv_reg_mr_iova and
// IBV_ACCESS_ZERO_BASED, by a program of ibverbs with two queue pairs that are each other's peers.
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace {

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
constexpr size_t kPage = 4096;
constexpr uint64_t kBase = uint64_t{0x5a} << 40;

class IovaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    ibv_device** const devices = ibv_get_device_list(&count);
    ASSERT_GT(count, 0);
    context_ = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    ASSERT_NE(context_, nullptr);
    domain_ = ibv_alloc_pd(context_);
    queue_ = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
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

  void TearDown() override {
    for (ibv_mr* const region : regions_) ibv_dereg_mr(region);
    if (ours_ != nullptr) ibv_dereg_mr(ours_);
    for (ibv_qp* const pair : pairs_) {
      if (pair != nullptr) ibv_destroy_qp(pair);
    }
    if (queue_ != nullptr) ibv_destroy_cq(queue_);
    if (domain_ != nullptr) ibv_dealloc_pd(domain_);
    if (context_ != nullptr) ibv_close_device(context_);
  }

  // In pages of its own, at their very beginning.
  ibv_mr* Register(uint64_t iova, int access) {
    theirs_ = static_cast<uint8_t*>(std::aligned_alloc(kPage, kPage));
    memory_.emplace_back(theirs_, &std::free);
    std::memset(theirs_, 0, kPage);
    ibv_mr* const region = ibv_reg_mr_iova(domain_, theirs_, kPage, iova, access);
    if (region != nullptr) regions_.push_back(region);
    return region;
  }

  // Runs a request of the first queue pair, and returns the status with which it ends.
  ibv_wc_status Run(ibv_wr_opcode opcode, ibv_sge local, uint64_t remote_address, uint32_t rkey) {
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

  ibv_wc_status Post(ibv_send_wr* request) {
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(pairs_[0], request, &bad), 0);
    ibv_wc completion{};
    const time_t last = time(nullptr) + 60;
    while (ibv_poll_cq(queue_, 1, &completion) == 0 && time(nullptr) < last) {
    }
    EXPECT_LT(time(nullptr), last);
    return completion.status;
  }

  ibv_sge Own(size_t at, uint32_t length) const {
    return {reinterpret_cast<uint64_t>(own_.data() + at), length, ours_->lkey};
  }

  std::array<uint8_t, 256> own_{};
  ibv_mr* ours_ = nullptr;
  uint8_t* theirs_ = nullptr;  // the memory that was registered last
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_cq* queue_ = nullptr;
  std::array<ibv_qp*, 2> pairs_{};

 private:
  void Connect(ibv_qp* pair, ibv_qp* peer) {
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

  std::vector<std::unique_ptr<uint8_t, void (*)(void*)>> memory_;
  std::vector<ibv_mr*> regions_;
};

TEST_F(IovaTest, PeersNameARegionByItsIova) {
  const ibv_mr* const region = Register(kBase, kAll);
  ASSERT_NE(region, nullptr);
  ASSERT_EQ(Run(IBV_WR_RDMA_WRITE, Own(10, 20), kBase + 100, region->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(theirs_ + 100, own_.data() + 10, 20), 0);
  ASSERT_EQ(Run(IBV_WR_RDMA_READ, Own(200, 20), kBase + 100, region->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(own_.data() + 200, own_.data() + 10, 20), 0);
  ASSERT_EQ(Run(IBV_WR_ATOMIC_FETCH_AND_ADD, Own(0, 8), kBase + 8, region->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(theirs_[8], 7);
  EXPECT_EQ(Run(IBV_WR_RDMA_WRITE, Own(0, 1), kBase + kPage, region->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(IovaTest, AnAddressOpensNothingOfARegionWithAnIova) {
  const ibv_mr* const region = Register(kBase, kAll);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(Run(IBV_WR_RDMA_WRITE, Own(0, 1), reinterpret_cast<uint64_t>(theirs_), region->rkey),
            IBV_WC_REM_ACCESS_ERR);
}

TEST_F(IovaTest, ItsOwnersSgesNameItByItsIovaToo) {
  const ibv_mr* const region = Register(kBase, kAll);
  ASSERT_NE(region, nullptr);
  std::memset(theirs_ + 50, 0xab, 4);
  const auto to = reinterpret_cast<uint64_t>(own_.data());
  ASSERT_EQ(Run(IBV_WR_RDMA_WRITE, {kBase + 50, 4, region->lkey}, to, ours_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(own_.data(), theirs_ + 50, 4), 0);
  ASSERT_EQ(Run(IBV_WR_RDMA_READ, {kBase + 60, 4, region->lkey}, to, ours_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(theirs_ + 60, own_.data(), 4), 0);
  ASSERT_EQ(Run(IBV_WR_ATOMIC_FETCH_AND_ADD, {kBase + 80, 8, region->lkey}, to, ours_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(theirs_ + 80, theirs_ + 50, 4), 0);
}

TEST_F(IovaTest, ARegionThatIsZeroBasedBeginsAtZero) {
  const ibv_mr* const region = Register(kBase, kAll | IBV_ACCESS_ZERO_BASED);
  ASSERT_NE(region, nullptr);
  ASSERT_EQ(Run(IBV_WR_RDMA_WRITE, Own(10, 20), 0, region->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(theirs_, own_.data() + 10, 20), 0);
  EXPECT_EQ(Run(IBV_WR_RDMA_WRITE, {0, 20, region->lkey}, reinterpret_cast<uint64_t>(own_.data()), ours_->rkey),
            IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(theirs_, own_.data(), 20), 0);
}

TEST_F(IovaTest, AWindowOfItIsNamedByTheIovaOrFromZero) {
  ibv_mr* const region = Register(kBase, kAll);
  ASSERT_NE(region, nullptr);
  for (const bool zero_based : {false, true}) {
    ibv_mw* const window = ibv_alloc_mw(domain_, IBV_MW_TYPE_2);
    ASSERT_NE(window, nullptr);
    ibv_send_wr bind{};
    bind.opcode = IBV_WR_BIND_MW;
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_mw.mw = window;
    bind.bind_mw.rkey = ibv_inc_rkey(window->rkey);
    bind.bind_mw.bind_info = {region, kBase + 1000, 100,
                              IBV_ACCESS_REMOTE_WRITE | (zero_based ? unsigned{IBV_ACCESS_ZERO_BASED} : 0u)};
    // Peers use a window in the queue pair that it was bound in: here the second.
    std::swap(pairs_[0], pairs_[1]);
    ASSERT_EQ(Post(&bind), IBV_WC_SUCCESS);
    std::swap(pairs_[0], pairs_[1]);
    theirs_[1007] = 0;
    ASSERT_EQ(Run(IBV_WR_RDMA_WRITE, Own(77, 1), (zero_based ? 0 : kBase + 1000) + 7, bind.bind_mw.rkey),
              IBV_WC_SUCCESS);
    EXPECT_EQ(theirs_[1007], 77);
    EXPECT_EQ(ibv_dealloc_mw(window), 0);
  }
}

TEST_F(IovaTest, AnIovaAtAnotherPlaceInItsPageIsRefused) {
  EXPECT_EQ(Register(kBase + 1, kAll), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
