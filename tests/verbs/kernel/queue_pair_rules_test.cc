#include "lib/verbs/kernel/queue_pair_rules.h"

#include <infiniband/verbs.h>

#include "gtest/gtest.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr uint32_t kInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr uint32_t kReceive =
    IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr uint32_t kSend =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

bool Connected(uint32_t from, uint32_t to, uint32_t mask) { return IsLegalStep(Service::kConnected, from, to, mask); }

TEST(QueuePairRulesTest, TheUsualStepsOfAConnectionAreLegal) {
  EXPECT_TRUE(Connected(IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_STATE | kInit));
  EXPECT_TRUE(Connected(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE | kReceive));
  EXPECT_TRUE(Connected(IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | kSend));
}

TEST(QueuePairRulesTest, EachRequiredAttributeOfAStepIsRequired) {
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    if ((kReceive & bit) == 0) continue;
    EXPECT_FALSE(Connected(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE | (kReceive & ~bit))) << bit;
  }
}

TEST(QueuePairRulesTest, AnAttributeThatAStepDoesNotTakeIsRefused) {
  EXPECT_FALSE(Connected(IBV_QPS_RESET, IBV_QPS_INIT, kInit | IBV_QP_QKEY));
  EXPECT_FALSE(Connected(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_DEST_QPN));
  EXPECT_TRUE(Connected(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_MIN_RNR_TIMER));
}

TEST(QueuePairRulesTest, StatesAreNotSkipped) {
  EXPECT_FALSE(Connected(IBV_QPS_RESET, IBV_QPS_RTR, kReceive));
  EXPECT_FALSE(Connected(IBV_QPS_INIT, IBV_QPS_RTS, kSend));
  EXPECT_FALSE(Connected(IBV_QPS_RTS, IBV_QPS_INIT, kInit));
  EXPECT_FALSE(Connected(IBV_QPS_ERR, IBV_QPS_RTS, 0));
}

TEST(QueuePairRulesTest, ResetAndErrorAreReachedFromEverywhere) {
  for (uint32_t from = IBV_QPS_RESET; from <= IBV_QPS_ERR; ++from) {
    EXPECT_TRUE(Connected(from, IBV_QPS_RESET, IBV_QP_STATE)) << from;
    EXPECT_TRUE(Connected(from, IBV_QPS_ERR, IBV_QP_STATE | IBV_QP_CUR_STATE)) << from;
    EXPECT_FALSE(Connected(from, IBV_QPS_ERR, IBV_QP_STATE | IBV_QP_PORT)) << from;
  }
}

TEST(QueuePairRulesTest, DatagramsNeedAKeyAndNoPeer) {
  const auto datagram = [](uint32_t from, uint32_t to, uint32_t mask) {
    return IsLegalStep(Service::kDatagram, from, to, mask);
  };
  EXPECT_TRUE(datagram(IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
  EXPECT_FALSE(datagram(IBV_QPS_RESET, IBV_QPS_INIT, kInit));
  EXPECT_TRUE(datagram(IBV_QPS_INIT, IBV_QPS_RTR, 0));
  EXPECT_FALSE(datagram(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV));
  EXPECT_TRUE(datagram(IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN));
}

TEST(QueuePairRulesTest, StatesThatDoNotExistAreNotReached) {
  EXPECT_FALSE(Connected(IBV_QPS_RESET, 7, 0));
  EXPECT_FALSE(Connected(7, IBV_QPS_INIT, kInit));
}

}  // namespace
}  // namespace tokamak::verbs::kernel
