// Lives of clusters on switches and cables: programs, faults and judge are those of world_test.cc.
#include "sim/time/sim_time.h"
#include "tests/sim/short_lives.h"

namespace tokamak::sim {
namespace {

class SwitchedWorldTest : public testing::TestWithParam<uint64_t> {};

TEST_P(SwitchedWorldTest, KeepsTheContract) { Live(ShortLife<SimTime>(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Seeds, SwitchedWorldTest, testing::Range(uint64_t{1}, kShortLives + 1));

TEST(SwitchedWorldRepeatTest, TheSameSeedIsTheSameLife) {
  EXPECT_EQ(Live(ShortLife<SimTime>(2)), Live(ShortLife<SimTime>(2)));
}

}  // namespace
}  // namespace tokamak::sim
