// Options that suit the devices of connections.
#include "lib/transport/endpoint_options.h"

#include "gtest/gtest.h"

namespace tokamak::transport {
namespace {

TEST(SuitableAckTimeoutTest, IsTheDefaultOfTheVerbsWhereTheDeviceAnswersAtOnce) {
  EXPECT_EQ(SuitableAckTimeout(verbs::Limits()), verbs::ReliabilityOptions().ack_timeout);
}

TEST(SuitableAckTimeoutTest, LeavesADeviceThatMustNotRepeatTwiceTheTimeThatItAsksFor) {
  verbs::Limits soft_roce;
  soft_roce.repeats_may_fail = true;
  soft_roce.ack_delay = base::Milliseconds(134);
  EXPECT_EQ(SuitableAckTimeout(soft_roce), base::Milliseconds(268));
}

// A time-out of 537 ms for a lost last packet is what its report would come to, doubled.
TEST(SuitableAckTimeoutTest, AllTriesTogetherLastForTwiceTheReportOfHardware) {
  verbs::Limits hardware;
  hardware.ack_delay = verbs::AckTimeout(16);
  const uint8_t code = verbs::AckTimeoutCode(SuitableAckTimeout(hardware));
  EXPECT_TRUE(verbs::AckTimeout(code) * (verbs::ReliabilityOptions().retry_count + 1) >= hardware.ack_delay * 2);
  EXPECT_EQ(code, 15) << "134 ms";
}

TEST(SuitableAckTimeoutTest, NoReportMakesItLongerThanTheBound) {
  for (const bool repeats_may_fail : {false, true}) {
    verbs::Limits endless;
    endless.repeats_may_fail = repeats_may_fail;
    endless.ack_delay = verbs::AckTimeout(31);
    EXPECT_EQ(verbs::AckTimeoutCode(SuitableAckTimeout(endless)), 16);
  }
}

TEST(KindOfTest, FollowsFromWhatTheDeviceSaysOfItself) {
  verbs::Limits limits;
  limits.drop_stops_transfers = true;
  EXPECT_EQ(KindOf(/*is_rdma=*/false, limits), DeviceKind::kSoftware);
  EXPECT_EQ(KindOf(/*is_rdma=*/true, limits), DeviceKind::kHardware);
  verbs::Limits rxe = limits;
  rxe.repeats_may_fail = true;
  EXPECT_EQ(KindOf(/*is_rdma=*/true, rxe), DeviceKind::kKernel);
  verbs::Limits siw = limits;
  siw.drop_stops_transfers = false;
  EXPECT_EQ(KindOf(/*is_rdma=*/true, siw), DeviceKind::kKernel);
}

}  // namespace
}  // namespace tokamak::transport
