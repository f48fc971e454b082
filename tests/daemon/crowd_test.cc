// The program of ci/many_nodes, with a few nodes instead of 200.
#include "tests/daemon/crowd.h"

#include "gtest/gtest.h"

namespace tokamak::daemon {
namespace {

constexpr int kNodes = 20;

TEST(CrowdTest, EachGetsFromEachAndNobodyIsTurnedAway) {
  Crowd crowd(kNodes);
  const CrowdReport report = crowd.GetAll(kPatience);
  EXPECT_EQ(report.gets, uint64_t{kNodes} * kNodes);
  EXPECT_EQ(report.failed_gets, 0u) << report.first_failure;
  EXPECT_EQ(report.failed_attempts, 0u);
  EXPECT_GT(report.connections, uint64_t{kNodes} * (kNodes - 1) / 2) << "some get it of those who have got it";
  EXPECT_EQ(report.connections_lost + report.protocol_errors + report.refusals, 0u);
  EXPECT_LE(report.most_descriptors_more, 0) << "connections take none";
}

}  // namespace
}  // namespace tokamak::daemon
