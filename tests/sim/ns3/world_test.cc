// SPDX-License-Identifier: GPL-2.0-only
//
// Lives of clusters inside ns-3: they keep the contract, and are those of our own virtual time.
#include "sim/ns3/ns3_time.h"
#include "sim/time/sim_time.h"
#include "tests/sim/short_lives.h"

namespace tokamak::sim {
namespace {

class Ns3WorldTest : public testing::TestWithParam<uint64_t> {};

TEST_P(Ns3WorldTest, ALifeIsTheSameToTheLastPacket) {
  EXPECT_EQ(Live(ShortLife<Ns3Time>(GetParam())), Live(ShortLife<SimTime>(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Ns3WorldTest, testing::Range(uint64_t{1}, kShortLives + 1));

}  // namespace
}  // namespace tokamak::sim
