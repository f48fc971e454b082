// What every directory promises about nodes and their leases.
#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {

using Ids = std::vector<NodeId>;

TEST_P(DirectoryConformance, ANodeEntersOnceAndIsRenewedAfter) {
  EXPECT_EQ(*Join("a"), JoinResult::kEntered);
  EXPECT_EQ(*Join("a"), JoinResult::kRenewed);
  EXPECT_EQ(*Join("b"), JoinResult::kEntered);
}

TEST_P(DirectoryConformance, NodesAreNamedInOrderWithAllThatIsKnown) {
  NodeInfo node = Node("b", UINT64_MAX);
  node.engines = {"10.0.0.2:7000", "[fd00::2]:7001"};
  node.device = "soft:udp@10.0.0.2 (a device with spaces)";
  node.capacity = UINT64_MAX;
  ASSERT_TRUE(Join(node).ok());
  ASSERT_TRUE(Join("c").ok());
  ASSERT_TRUE(Join("a.b:c-d_E9").ok());
  EXPECT_EQ(NodeIds(), (Ids{"a.b:c-d_E9", "b", "c"}));
  const NodeInfo known = (*Nodes())[1];
  EXPECT_EQ(known.incarnation, node.incarnation);
  EXPECT_EQ(known.engines, node.engines);
  EXPECT_EQ(known.device, node.device);
  EXPECT_EQ(known.capacity, node.capacity);
}

TEST_P(DirectoryConformance, ARenewalReplacesWhatIsKnownOfTheNode) {
  ASSERT_TRUE(Join("a").ok());
  NodeInfo moved = Node("a");
  moved.engines = {"10.0.0.9:7000", "10.0.0.9:7001"};
  EXPECT_EQ(*Join(moved), JoinResult::kRenewed);
  EXPECT_EQ(Nodes()->front().engines, moved.engines);
}

TEST_P(DirectoryConformance, AnEarlierLifeIsRefused) {
  ASSERT_TRUE(Join("a", 10).ok());
  const absl::Status refused = Join("a", 9).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(Nodes()->front().incarnation, 10u);
}

TEST_P(DirectoryConformance, IncarnationsCompareAsNumbers) {
  ASSERT_TRUE(Join("a", 9).ok());
  EXPECT_EQ(*Join("a", 10), JoinResult::kEntered);
  EXPECT_EQ(*Join("a", UINT64_MAX - 1), JoinResult::kEntered);
  EXPECT_EQ(*Join("a", UINT64_MAX), JoinResult::kEntered);
  EXPECT_FALSE(Join("a", UINT64_MAX - 1).ok());
}

TEST_P(DirectoryConformance, ALaterLifeHoldsNothing) {
  ASSERT_TRUE(Join("a", 1).ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  EXPECT_EQ(*Join("a", 2), JoinResult::kEntered);
  EXPECT_EQ(Holders("x"), Ids());
}

TEST_P(DirectoryConformance, NamesAndAddressesAreChecked) {
  EXPECT_TRUE(absl::IsInvalidArgument(Join("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Join("a b").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Join(NodeId(kMaxNodeName + 1, 'a')).status()));
  EXPECT_TRUE(Join(NodeId(kMaxNodeName, 'a')).ok());
  NodeInfo node = Node("a");
  node.engines.clear();
  EXPECT_TRUE(absl::IsInvalidArgument(Join(node).status()));
  node.engines.assign(kMaxEngines + 1, "10.0.0.1:7000");
  EXPECT_TRUE(absl::IsInvalidArgument(Join(node).status()));
  node.engines.assign(kMaxEngines, "10.0.0.1:7000");
  EXPECT_TRUE(Join(node).ok());
  node.device.assign(kMaxDeviceText + 1, 'd');
  EXPECT_TRUE(absl::IsInvalidArgument(Join(node).status()));
}

TEST_P(DirectoryConformance, ANodeIsGoneWhenItsLeaseEnds) {
  ASSERT_TRUE(Join("a", 1, kShort).ok());
  ASSERT_TRUE(Join("b", 1, kLong).ok());
  Pass(kShort * 2);
  EXPECT_EQ(NodeIds(), Ids{"b"});
}

TEST_P(DirectoryConformance, WhatANodeHeldIsForgottenWhenItsLeaseEnds) {
  ASSERT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Join("b", 1, kLong).ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  ASSERT_TRUE(Announce("x", "b").ok());
  ASSERT_TRUE(Announce("y", "a").ok());
  ASSERT_TRUE(Join("a", 1, kShort).ok());
  Pass(kShort * 2);
  EXPECT_EQ(Holders("x"), Ids{"b"});
  EXPECT_EQ(Holders("y"), Ids());
}

TEST_P(DirectoryConformance, ANodeWhoseLeaseEndedEntersAgainAndHoldsWhatItAnnouncesAgain) {
  ASSERT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  ASSERT_TRUE(Announce("y", "a").ok());
  ASSERT_TRUE(Join("a", 1, kShort).ok());
  Pass(kShort * 2);
  EXPECT_EQ(*Join("a", 1, kLong), JoinResult::kEntered);
  ASSERT_TRUE(Announce("y", "a").ok());
  EXPECT_EQ(Holders("x"), Ids());
  EXPECT_EQ(Holders("y"), Ids{"a"});
}

TEST_P(DirectoryConformance, ARenewalProlongsTheLease) {
  ASSERT_TRUE(Join("a", 1, kShort).ok());
  EXPECT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  Pass(kShort * 2);
  EXPECT_EQ(NodeIds(), Ids{"a"});
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, LeavingEndsTheLeaseAtOnce) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  EXPECT_TRUE(Leave("a").ok());
  EXPECT_EQ(NodeIds(), Ids{"b"});
  EXPECT_EQ(Holders("x"), Ids());
  EXPECT_TRUE(absl::IsNotFound(Announce("x", "a")));
  EXPECT_EQ(*Join("a"), JoinResult::kEntered);
  EXPECT_EQ(Holders("x"), Ids());
}

TEST_P(DirectoryConformance, AnEarlierLifeCannotEndTheLeaseOfALaterOne) {
  ASSERT_TRUE(Join("a", 2).ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  EXPECT_TRUE(Leave("a", 1).ok());
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, LeavingTwiceOrUnknownIsNoError) {
  EXPECT_TRUE(Leave("a").ok());
  ASSERT_TRUE(Join("a").ok());
  EXPECT_TRUE(Leave("a").ok());
  EXPECT_TRUE(Leave("a").ok());
}

TEST_P(DirectoryConformance, MoreNodesThanTheBoundAreRefused) {
  std::vector<std::shared_ptr<Answer<absl::StatusOr<JoinResult>>>> joins;
  for (size_t i = 0; i < kMaxNodes; ++i) {
    joins.push_back(StartJoin(here(), Node("n" + std::to_string(i)), kLong, kDeadline));
    if (i % 256 == 255) (void)Await(joins.back());
  }
  for (const auto& join : joins) EXPECT_TRUE(Await(join).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Join("one-more").status()));
  EXPECT_EQ(*Join("n0"), JoinResult::kRenewed);
  EXPECT_EQ(Nodes()->size(), kMaxNodes);
  EXPECT_TRUE(Leave("n1").ok());
  EXPECT_EQ(*Join("one-more"), JoinResult::kEntered);
}

}  // namespace tokamak::directory
