// The steps of QueuePair::Modify.
#include "lib/verbs/ibv/translation/manual_steps.h"

#include "gtest/gtest.h"

namespace tokamak::verbs::ibv {
namespace {

class ManualStepsTest : public testing::Test {
 protected:
  ManualStepsTest() {
    limits_.max_reads = 8;
    attributes_.peer_number = 0xffffff;
    attributes_.receive_psn = 1;
    attributes_.send_psn = 2;
    attributes_.path_mtu = 2048;
    attributes_.reliability.reads_outstanding = 8;
    attributes_.reliability.reads_served = 4;
  }

  Limits limits_;
  QueuePairAttributes attributes_;
};

TEST_F(ManualStepsTest, OnlyTheNextStateIsAStepForward) {
  constexpr QueuePairState kInOrder[] = {QueuePairState::kReset, QueuePairState::kInit, QueuePairState::kReadyToReceive,
                                         QueuePairState::kReadyToSend};
  for (size_t from = 0; from < 4; ++from) {
    for (size_t to = 0; to < 4; ++to) EXPECT_EQ(IsStepForward(kInOrder[from], kInOrder[to]), to == from + 1);
    EXPECT_FALSE(IsStepForward(QueuePairState::kError, kInOrder[from]));
  }
}

TEST_F(ManualStepsTest, TheAgreementIsThatOfTheAttributes) {
  const absl::StatusOr<Agreement> agreement = AgreementOf(attributes_, limits_);
  ASSERT_TRUE(agreement.ok()) << agreement.status();
  EXPECT_EQ(agreement->peer_number, 0xffffffu);
  EXPECT_EQ(agreement->receive_psn, 1u);
  EXPECT_EQ(agreement->send_psn, 2u);
  EXPECT_EQ(agreement->path_mtu, 2048u);
  EXPECT_EQ(agreement->reliability.reads_served, 4);
}

TEST_F(ManualStepsTest, NumbersBeyond24BitsAreRefused) {
  for (uint32_t QueuePairAttributes::*number :
       {&QueuePairAttributes::peer_number, &QueuePairAttributes::receive_psn, &QueuePairAttributes::send_psn}) {
    QueuePairAttributes wrong = attributes_;
    wrong.*number = 0x1000000;
    EXPECT_TRUE(absl::IsInvalidArgument(AgreementOf(wrong, limits_).status()));
  }
}

TEST_F(ManualStepsTest, MoreReadsThanTheDeviceTakesAreRefused) {
  attributes_.reliability.reads_served = 9;
  EXPECT_TRUE(absl::IsInvalidArgument(AgreementOf(attributes_, limits_).status()));
  attributes_.reliability.reads_served = 8;
  attributes_.reliability.reads_outstanding = 9;
  EXPECT_TRUE(absl::IsInvalidArgument(AgreementOf(attributes_, limits_).status()));
}

}  // namespace
}  // namespace tokamak::verbs::ibv
