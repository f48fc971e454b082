// What suits the devices that connections go over.
#include "lib/transport/endpoint_options.h"

#include "gtest/gtest.h"

namespace tokamak::transport {
namespace {

TEST(SuitableAckTimeoutTest, IsTheDefaultOfTheVerbsWhereTheDeviceAnswersAtOnce) {
  EXPECT_EQ(SuitableAckTimeout(verbs::Limits()), verbs::ReliabilityOptions().ack_timeout);
}

TEST(SuitableAckTimeoutTest, LeavesASlowDeviceTwiceTheTimeThatItAsksFor) {
  verbs::Limits soft_roce;
  soft_roce.ack_delay = base::Milliseconds(134);
  EXPECT_EQ(SuitableAckTimeout(soft_roce), base::Milliseconds(268));
}

}  // namespace
}  // namespace tokamak::transport
