// The fault tests' arrangements on a wire are exactly as requested.
#include "tests/faults/wire.h"

#include <algorithm>
#include <cstdlib>

#include "gtest/gtest.h"

namespace tokamak::faults {
namespace {

// 2 MiB in packets of 1,024 bytes are 2,048, sent in one go: with a delay all of them are held at
// once.
constexpr int kBurst = 2048;

TEST(WireTest, NetemHoldsABurstWithoutLoss) {
  const std::vector<std::string> command = NetemCommand("v0", "delay 1ms reorder 99%");
  const auto limit = std::find(command.begin(), command.end(), "limit");
  ASSERT_TRUE(limit != command.end() && limit + 1 != command.end());
  EXPECT_GE(std::atoi((limit + 1)->c_str()), 10 * kBurst);
}

TEST(WireTest, NetemGetsTheGivenSettings) {
  const std::vector<std::string> command = NetemCommand("v0", "delay  1ms");
  ASSERT_GE(command.size(), 2u);
  EXPECT_EQ(command[command.size() - 2], "delay");
  EXPECT_EQ(command.back(), "1ms");
  EXPECT_NE(std::find(command.begin(), command.end(), "v0"), command.end());
}

TEST(WireTest, ARealPortIsLeftAlone) {
  EXPECT_EQ(CheckVirtual("no-such-device").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(CheckVirtual("lo").ok());
}

}  // namespace
}  // namespace tokamak::faults
