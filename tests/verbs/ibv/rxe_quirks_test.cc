// Soft-RoCE's differences from the promises of libibverbs (docs/verbs.md), seen through libibverbs
// alone. A case that fails shows that the kernel has fixed it: then our workaround may go.
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/faults/command.h"
#include "tests/faults/wire.h"

namespace tokamak::verbs::ibv {
namespace {

using std::chrono::milliseconds;

using Completions = std::vector<std::pair<uint64_t, ibv_wc_status>>;

constexpr auto kPatience = milliseconds(20000);
constexpr auto kLong = milliseconds(4000);
// Half a second, in which an interface can be set down, and a second together.
constexpr uint8_t kTimeout = 17, kRetries = 1;

// An end of a connection that was made by hand.
class End final {
 public:
  End(const std::string& device, const std::string& address) { Open(device, address); }
  ~End() {
    if (queue_pair_ != nullptr) ibv_destroy_qp(queue_pair_);
    if (region_ != nullptr) ibv_dereg_mr(region_);
    if (queue_ != nullptr) ibv_destroy_cq(queue_);
    if (domain_ != nullptr) ibv_dealloc_pd(domain_);
    if (context_ != nullptr) ibv_close_device(context_);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void Connect(const End& peer) {
    ibv_qp_attr to_init{};
    to_init.qp_state = IBV_QPS_INIT;
    to_init.port_num = 1;
    to_init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    ASSERT_EQ(
        ibv_modify_qp(queue_pair_, &to_init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    ibv_qp_attr to_rtr{};
    to_rtr.qp_state = IBV_QPS_RTR;
    to_rtr.path_mtu = IBV_MTU_1024;
    to_rtr.dest_qp_num = peer.queue_pair_->qp_num;
    to_rtr.max_dest_rd_atomic = 1;
    to_rtr.min_rnr_timer = 12;
    to_rtr.ah_attr.is_global = 1;
    to_rtr.ah_attr.port_num = 1;
    to_rtr.ah_attr.grh.dgid = peer.gid_;
    to_rtr.ah_attr.grh.sgid_index = gid_index_;
    to_rtr.ah_attr.grh.hop_limit = 1;
    ASSERT_EQ(ibv_modify_qp(queue_pair_, &to_rtr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    ibv_qp_attr to_rts{};
    to_rts.qp_state = IBV_QPS_RTS;
    to_rts.timeout = kTimeout;
    to_rts.retry_cnt = to_rts.rnr_retry = kRetries;
    to_rts.max_rd_atomic = 1;
    ASSERT_EQ(ibv_modify_qp(queue_pair_, &to_rts,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }

  // WRITEs a few bytes to `peer`, from memory of this end or from nobody's.
  void PostRight(uint64_t id, const End& peer) { Post(id, region_->lkey, peer); }
  void PostWrong(uint64_t id, const End& peer) { Post(id, region_->lkey ^ 0x5a5a5a, peer); }

  void ToError() {
    ibv_qp_attr to_error{};
    to_error.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(queue_pair_, &to_error, IBV_QP_STATE), 0);
  }

  // `count` completions, or those that come within `patience`.
  Completions Await(size_t count, milliseconds patience = kPatience) {
    Completions all;
    const auto until = std::chrono::steady_clock::now() + patience;
    while (all.size() < count && std::chrono::steady_clock::now() < until) {
      ibv_wc done{};
      if (ibv_poll_cq(queue_, 1, &done) == 1) {
        all.emplace_back(done.wr_id, done.status);
      } else {
        std::this_thread::yield();
      }
    }
    return all;
  }

 private:
  void Open(const std::string& name, const std::string& address) {
    int count = 0;
    ibv_device** const devices = ibv_get_device_list(&count);
    for (int i = 0; i < count; ++i) {
      if (name == ibv_get_device_name(devices[i])) context_ = ibv_open_device(devices[i]);
    }
    ibv_free_device_list(devices);
    ASSERT_NE(context_, nullptr) << name;
    ASSERT_TRUE(FindGid(address)) << address;
    domain_ = ibv_alloc_pd(context_);
    queue_ = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
    region_ = ibv_reg_mr(domain_, bytes_.data(), bytes_.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ASSERT_NE(region_, nullptr);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue_;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {4, 1, 1, 1, 0};
    wanted.sq_sig_all = 1;
    queue_pair_ = ibv_create_qp(domain_, &wanted);
    ASSERT_NE(queue_pair_, nullptr);
  }

  bool FindGid(const std::string& address) {
    ibv_gid wanted{};
    wanted.raw[10] = wanted.raw[11] = 0xff;
    if (inet_pton(AF_INET, address.c_str(), wanted.raw + 12) != 1) return false;
    constexpr uint8_t kIndexes = 16;
    for (gid_index_ = 0; gid_index_ < kIndexes; ++gid_index_) {
      if (ibv_query_gid(context_, 1, gid_index_, &gid_) != 0) continue;
      if (std::memcmp(&gid_, &wanted, sizeof(wanted)) == 0) return true;
    }
    return false;
  }

  void Post(uint64_t id, uint32_t lkey, const End& to) {
    ibv_sge piece = {reinterpret_cast<uint64_t>(bytes_.data()), 8, lkey};
    ibv_send_wr request{};
    request.wr_id = id;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(to.bytes_.data());
    request.wr.rdma.rkey = to.region_->rkey;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(queue_pair_, &request, &bad), 0);
  }

  std::array<uint8_t, 64> bytes_{};
  ibv_context* context_ = nullptr;
  ibv_gid gid_{};
  uint8_t gid_index_ = 0;
  ibv_pd* domain_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_qp* queue_pair_ = nullptr;
};

class RxeQuirksTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const kind = std::getenv("TOKAMAK_LAB_KIND");
    ASSERT_NE(kind, nullptr) << "it runs in the lab's guest";
    ASSERT_STREQ(kind, "rxe");
    std::istringstream devices(std::getenv("TOKAMAK_LAB_DEVICES")), addresses(std::getenv("TOKAMAK_LAB_ADDRESSES"));
    std::string device, address;
    for (auto* end : {&active_, &passive_}) {
      ASSERT_TRUE(devices >> device && addresses >> address);
      *end = std::make_unique<End>(device, address);
      ASSERT_FALSE(HasFatalFailure());
    }
    ASSERT_NO_FATAL_FAILURE(active_->Connect(*passive_));
    ASSERT_NO_FATAL_FAILURE(passive_->Connect(*active_));
  }

  // Answers come after all retries, and before `kLong` is over.
  void DelayAnswers() {
    auto netem = faults::Netem::Start({"v1"}, "delay 2s");
    ASSERT_TRUE(netem.ok()) << netem.status();
    netem_ = *std::move(netem);
  }

  // No request completes by itself, though all retries are over and the answer has come; in Error
  // all are flushed.
  void ExpectNothingBeforeError() {
    EXPECT_EQ(active_->Await(1, kLong), Completions()) << "mended";
    active_->ToError();
    EXPECT_EQ(active_->Await(2), Completions({{1, IBV_WC_WR_FLUSH_ERR}, {2, IBV_WC_WR_FLUSH_ERR}}));
  }

  std::unique_ptr<faults::Netem> netem_;
  std::unique_ptr<End> active_, passive_;
};

// Before the others, which lose packets.
TEST_F(RxeQuirksTest, AnUnsendableRequestFailsOnceEarlierOnesWereAnswered) {
  active_->PostRight(1, *passive_);
  EXPECT_EQ(active_->Await(1), Completions({{1, IBV_WC_SUCCESS}}));
  active_->PostWrong(2, *passive_);
  EXPECT_EQ(active_->Await(1), Completions({{2, IBV_WC_LOC_QP_OP_ERR}}));
}

// A request that cannot be sent takes the requester to Error (rxe_requester), where answers are
// dropped unread (check_type_state): what waits for one waits for good. Its ack time-out asks the
// requester to send again, which it does not do in Error.
TEST_F(RxeQuirksTest, UnansweredRequestsBeforeAnUnsendableOneNeverComplete) {
  ASSERT_NO_FATAL_FAILURE(DelayAnswers());
  active_->PostRight(1, *passive_);
  active_->PostWrong(2, *passive_);
  ExpectNothingBeforeError();
}

TEST_F(RxeQuirksTest, UnansweredRequestsNeverCompleteOnceTheInterfaceIsDown) {
  ASSERT_NO_FATAL_FAILURE(DelayAnswers());
  active_->PostRight(1, *passive_);
  ASSERT_EQ(faults::Run({"ip", "link", "set", "v0", "down"}), absl::OkStatus());
  active_->PostRight(2, *passive_);
  ExpectNothingBeforeError();
  EXPECT_EQ(faults::Run({"ip", "link", "set", "v0", "up"}), absl::OkStatus());
}

}  // namespace
}  // namespace tokamak::verbs::ibv
