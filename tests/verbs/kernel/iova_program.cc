// Regions whose bytes requests name by other numbers than their addresses: ibv_reg_mr_iova and
// IBV_ACCESS_ZERO_BASED, by a program of ibverbs with two queue pairs that are each other's peers.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/verbs/kernel/loop_pair.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kBase = uint64_t{0x5a} << 40;

class IovaTest : public LoopPair {
 protected:
  void TearDown() override {
    for (ibv_mr* const region : regions_) ibv_dereg_mr(region);
    LoopPair::TearDown();
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

  uint8_t* theirs_ = nullptr;  // the memory that was registered last

 private:
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

TEST_F(IovaTest, AWindowOfARegionWithAnIovaIsNamedByItOrFromZero) {
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
}  // namespace tokamak::verbs::kernel
