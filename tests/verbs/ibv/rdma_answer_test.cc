// An answer that the kernel would not take is known before it is given, so that what it does not
// take then is the asker's departure.
#include "lib/verbs/ibv/cm/rdma_answer.h"

#include <cerrno>
#include <string>

#include "gtest/gtest.h"
#include "lib/verbs/ibv/cm/connection_rules.h"

namespace tokamak::verbs::ibv {
namespace {

constexpr uint32_t kMaxReads = 16;

rdma_conn_param Right() {
  static constexpr CarriedData kBytes{};
  rdma_conn_param answer{};
  answer.private_data = kBytes.data();
  answer.private_data_len = kBytes.size();
  answer.responder_resources = kMaxReads;
  answer.initiator_depth = kMaxReads;
  answer.qp_num = 17;
  return answer;
}

absl::Status Check(const rdma_conn_param& answer) {
  return CheckAnswer(answer, LinkKind::kRoce, QueuePairState::kReadyToSend, kMaxReads);
}

TEST(RdmaAnswerTest, AnAnswerWithinTheDevicesLimitsIsRight) {
  EXPECT_TRUE(Check(Right()).ok());
  EXPECT_TRUE(CheckAnswer(Right(), LinkKind::kInfiniBand, QueuePairState::kReadyToSend, kMaxReads).ok());
  EXPECT_TRUE(CheckAnswer(Right(), LinkKind::kIwarp, QueuePairState::kInit, kMaxReads).ok());
}

TEST(RdmaAnswerTest, AnAnswerThatTheKernelWouldRefuseIsOurMistake) {
  const auto refused = [](auto change) {
    rdma_conn_param answer = Right();
    change(answer);
    return absl::IsInvalidArgument(Check(answer));
  };
  EXPECT_TRUE(refused([](rdma_conn_param& answer) { answer.responder_resources = kMaxReads + 1; }));
  EXPECT_TRUE(refused([](rdma_conn_param& answer) { answer.initiator_depth = kMaxReads + 1; }));
  EXPECT_TRUE(refused([](rdma_conn_param& answer) { answer.private_data_len = kCarriedPrivateData + 1; }));
  EXPECT_TRUE(refused([](rdma_conn_param& answer) { answer.qp_num = 0; }));
}

// rdma_cm's "as many as the device has" is no number of ours.
TEST(RdmaAnswerTest, ReadsWithoutANumberAreRefused) {
  rdma_conn_param answer = Right();
  answer.responder_resources = RDMA_MAX_RESP_RES;
  EXPECT_TRUE(absl::IsInvalidArgument(Check(answer)));
}

TEST(RdmaAnswerTest, TheQueuePairIsInTheStateThatTheLinkNeeds) {
  for (LinkKind link : {LinkKind::kInfiniBand, LinkKind::kRoce, LinkKind::kIwarp}) {
    for (QueuePairState state : {QueuePairState::kReset, QueuePairState::kInit, QueuePairState::kReadyToReceive,
                                 QueuePairState::kReadyToSend, QueuePairState::kError}) {
      const QueuePairState right = link == LinkKind::kIwarp ? QueuePairState::kInit : QueuePairState::kReadyToSend;
      const absl::Status status = CheckAnswer(Right(), link, state, kMaxReads);
      if (state == right) {
        EXPECT_TRUE(status.ok()) << status;
      } else {
        EXPECT_TRUE(absl::IsFailedPrecondition(status)) << ToString(link) << " " << ToString(state) << ": " << status;
      }
    }
  }
}

TEST(RdmaAnswerTest, ARightAnswerThatIsRefusedMeansThatTheAskerHasGone) {
  EXPECT_TRUE(absl::IsCancelled(AnswerStatus(EINVAL, "rdma_accept")));
  EXPECT_TRUE(absl::IsCancelled(AnswerStatus(ECONNRESET, "rdma_accept")));
  EXPECT_NE(AnswerStatus(EINVAL, "rdma_init_qp_attr").message().find("rdma_init_qp_attr"), std::string::npos);
}

TEST(RdmaAnswerTest, OtherErrorsKeepTheirCode) {
  for (int error : {ENOMEM, ENXIO, EIO, ENODEV, ETIMEDOUT}) {
    EXPECT_FALSE(absl::IsCancelled(AnswerStatus(error, "rdma_accept"))) << error;
    EXPECT_FALSE(AnswerStatus(error, "rdma_accept").ok()) << error;
  }
}

}  // namespace
}  // namespace tokamak::verbs::ibv
