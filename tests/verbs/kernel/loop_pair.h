// LoopPair is what programs of ibverbs in these tests begin with: a device, and two queue pairs of
// it that are each other's peers.
//
// Thread rule: none.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>

#include "gtest/gtest.h"

namespace tokamak::verbs::kernel {

class LoopPair : public ::testing::Test {
 protected:
  static constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

  // Makes the completion queue of the queue pairs.
  virtual ibv_cq* MakeQueue() { return ibv_create_cq(context_, kDepth, nullptr, channel_, 0); }
  static constexpr int kDepth = 16;

  void SetUp() override;
  void TearDown() override;

  // Runs a request of the first queue pair, and returns the status with which it ends.
  ibv_wc_status Run(ibv_wr_opcode opcode, ibv_sge local, uint64_t remote_address, uint32_t rkey);
  ibv_wc_status Post(ibv_send_wr* request);

  // Memory of ours, as a request names it.
  ibv_sge Own(size_t at, uint32_t length) const {
    return {reinterpret_cast<uint64_t>(own_.data() + at), length, ours_->lkey};
  }
  uint64_t OwnAddress(size_t at) const { return reinterpret_cast<uint64_t>(own_.data() + at); }

  // Writes through the pair until it is sure that each has been carried out.
  void ExpectThatItWorks();

  std::array<uint8_t, 256> own_{};
  ibv_mr* ours_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  std::array<ibv_qp*, 2> pairs_{};

 private:
  void Connect(ibv_qp* pair, ibv_qp* peer);
};

}  // namespace tokamak::verbs::kernel
