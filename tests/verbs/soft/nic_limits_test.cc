// The path MTU of a NIC's port.
#include "lib/verbs/soft/nic_limits.h"

#include "gtest/gtest.h"
#include "lib/verbs/soft/packets/packet.h"

namespace tokamak::verbs::soft {
namespace {

TEST(NicLimitsTest, APathMtuIsThePowerOfTwoBelow) {
  EXPECT_EQ(RoundMtu(1500), 1024u);
  EXPECT_EQ(RoundMtu(2048), 2048u);
  EXPECT_EQ(RoundMtu(9000), kMaxMtu);
  EXPECT_EQ(RoundMtu(100), kMinMtu);
  EXPECT_EQ(MakeLimits(1024).active_mtu, 1024u);
}

}  // namespace
}  // namespace tokamak::verbs::soft
