// Every directory's promise about nodes: alive, silent, gone, and their later lives.
#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {

TEST_P(DirectoryConformance, ANodeEntersOnceAndIsRenewedAfter) {
  EXPECT_TRUE(Join("a")->entered);
  EXPECT_FALSE(Join("a")->entered);
  EXPECT_TRUE(Join("b")->entered);
}

TEST_P(DirectoryConformance, NodesAreNamedInOrderWithAllThatIsKnown) {
  NodeInfo node = Node("b", UINT64_MAX);
  node.engines = {"10.0.0.2:7000", "[fd00::2]:7001"};
  node.device = "soft:udp@10.0.0.2 (a device with spaces)";
  node.capacity = UINT64_MAX;
  ASSERT_TRUE(Join(JoinOf(node)).ok());
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
  EXPECT_FALSE(Join(JoinOf(moved))->entered);
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
  EXPECT_TRUE(Join("a", 10)->entered);
  EXPECT_TRUE(Join("a", UINT64_MAX - 1)->entered);
  EXPECT_TRUE(Join("a", UINT64_MAX)->entered);
  EXPECT_FALSE(Join("a", UINT64_MAX - 1).ok());
}

TEST_P(DirectoryConformance, ALaterLifeAtTheSameAddressesHoldsNothing) {
  ASSERT_TRUE(Join("a", 1).ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  EXPECT_TRUE(Join("a", 2)->entered);
  EXPECT_EQ(Holders("x"), Ids());
  EXPECT_TRUE(Announce("a", "x", 2).ok()) << "nobody holds the first content any more";
}

TEST_P(DirectoryConformance, ASecondNodeWithTheNameOfOneThatIsAliveIsRefused) {
  ASSERT_TRUE(Join("a", 1).ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  const absl::Status refused = Join(JoinOf(Node("a", 2, "10.0.0.2:7000"))).status();
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  EXPECT_EQ(Nodes()->front().incarnation, 1u);
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, ASilentNodesNameIsFreeButWhatItHoldsKeepsItsId) {
  ASSERT_TRUE(Join("a", 1, kLong, kLong).ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Join("a", 1, kShort, kLong).ok());
  Pass(kShort * 2);
  EXPECT_TRUE(Join(JoinOf(Node("a", 2, "10.0.0.2:7000")))->entered);
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("a", "x", 2))) << "the first life may still run, cut off";
  EXPECT_EQ(Delete("x")->silent, Ids{"a"});
  EXPECT_TRUE(absl::IsFailedPrecondition(Join("a", 1).status()));
}

TEST_P(DirectoryConformance, NamesAndAddressesAreChecked) {
  EXPECT_TRUE(absl::IsInvalidArgument(Join("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Join("a b").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Join(NodeId(kMaxNodeName + 1, 'a')).status()));
  EXPECT_TRUE(Join(NodeId(kMaxNodeName, 'a')).ok());
  NodeInfo node = Node("a");
  node.engines.clear();
  EXPECT_TRUE(absl::IsInvalidArgument(Join(JoinOf(node)).status()));
  node.engines.assign(kMaxEngines + 1, "10.0.0.1:7000");
  EXPECT_TRUE(absl::IsInvalidArgument(Join(JoinOf(node)).status()));
  node.engines.assign(kMaxEngines, "10.0.0.1:7000");
  EXPECT_TRUE(Join(JoinOf(node)).ok());
  for (const char* odd : {"10.0.0.1:7000 ", "10.0.0.1:7\x1b[2J", "10.0.0.1\n"}) {
    node.engines = {odd};
    EXPECT_TRUE(absl::IsInvalidArgument(Join(JoinOf(node)).status())) << odd;
  }
  node = Node("a");
  node.device = "soft\n";
  EXPECT_TRUE(absl::IsInvalidArgument(Join(JoinOf(node)).status())) << "others print it";
  node.device.assign(kMaxDeviceText + 1, 'd');
  EXPECT_TRUE(absl::IsInvalidArgument(Join(JoinOf(node)).status()));
}

TEST_P(DirectoryConformance, ALeaseIsLongerThanNothing) {
  EXPECT_TRUE(absl::IsInvalidArgument(Join("a", 1, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Join("a", 1, kLong, base::Seconds(-1)).status()));
  EXPECT_EQ(NodeIds(), Ids());
}

TEST_P(DirectoryConformance, ASilentNodeIsNamedNowhere) {
  ASSERT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Join("b", 1, kLong).ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Announce("b", "x", 1, true).ok());
  ASSERT_TRUE(Announce("a", "y").ok());
  ASSERT_TRUE(Join("a", 1, kShort, kLong).ok());
  Pass(kShort * 2);
  EXPECT_EQ(NodeIds(), Ids{"b"});
  EXPECT_EQ(Holders("x"), Ids{"b"});
  EXPECT_EQ(Holders("y"), Ids());
}

TEST_P(DirectoryConformance, TheRosterHasSilentNodesAsWellAndSaysForHowLongEachIsUnheard) {
  ASSERT_TRUE(Join("a", 1, kShort, kLong).ok());
  ASSERT_TRUE(Join("c", 1, kShort, kShort).ok());
  Pass(kShort * 3);
  ASSERT_TRUE(Join("b").ok());
  RosterList roster = Roster();
  ASSERT_TRUE(roster.ok()) << roster.status();
  ASSERT_EQ(roster->size(), 2u) << "c is gone";
  const RosterEntry a = roster->front(), b = roster->back();
  EXPECT_EQ(a.node.id + b.node.id, "ab");
  EXPECT_EQ(a.node.engines, Node("a").engines);
  EXPECT_EQ(a.liveness, Liveness::kSilent);
  EXPECT_EQ(b.liveness, Liveness::kAlive);
  EXPECT_GE(a.unheard_for, kShort * 2);
  EXPECT_LT(b.unheard_for, a.unheard_for);
  ASSERT_TRUE(Join("a").ok());
  roster = Roster();
  ASSERT_TRUE(roster.ok()) << roster.status();
  EXPECT_EQ(roster->front().liveness, Liveness::kAlive);
  EXPECT_LT(roster->front().unheard_for, a.unheard_for);
  ASSERT_TRUE(Leave("a").ok());
  EXPECT_EQ(Roster()->size(), 1u);
}

TEST_P(DirectoryConformance, TheRosterHasALaterLifeInPlaceOfASilentOneOfItsName) {
  ASSERT_TRUE(Join("a", 1, kShort, kLong).ok());
  Pass(kShort * 2);
  ASSERT_TRUE(Join(JoinOf(Node("a", 2, "10.0.0.2:7000"))).ok());
  const RosterList roster = Roster();
  ASSERT_TRUE(roster.ok()) << roster.status();
  ASSERT_EQ(roster->size(), 1u);
  EXPECT_EQ(roster->front().node.incarnation, 2u);
  EXPECT_EQ(roster->front().liveness, Liveness::kAlive);
}

TEST_P(DirectoryConformance, WhatASilentNodeHoldsKeepsItsId) {
  ASSERT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Join("b", 1, kLong).ok());
  ASSERT_TRUE(Announce("a", "x", 1).ok());
  ASSERT_TRUE(Join("a", 1, kShort, kLong).ok());
  Pass(kShort * 2);
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("b", "x", 2)));
  EXPECT_TRUE(Announce("b", "x", 1, true).ok());
}

TEST_P(DirectoryConformance, ASilentNodeAnnouncesNothingBeforeItHasJoined) {
  ASSERT_TRUE(Join("a", 1, kShort, kLong).ok());
  Pass(kShort * 2);
  EXPECT_TRUE(absl::IsNotFound(Announce("a", "x")));
}

TEST_P(DirectoryConformance, ASilentNodeThatIsBackHoldsWhatItHeld) {
  ASSERT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Join("a", 1, kShort, kLong).ok());
  Pass(kShort * 2);
  EXPECT_FALSE(Join("a")->entered);
  EXPECT_EQ(NodeIds(), Ids{"a"});
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, AfterItsGraceANodeIsGoneAndWhatItHeldIsForgotten) {
  ASSERT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Join("b", 1, kLong).ok());
  ASSERT_TRUE(Announce("a", "x", 1).ok());
  ASSERT_TRUE(Announce("a", "y", 1).ok());
  ASSERT_TRUE(Join("a", 1, kShort, kShort).ok());
  Pass(kShort * 3);
  EXPECT_TRUE(Announce("b", "x", 2).ok());
  EXPECT_TRUE(Join("a")->entered);
  EXPECT_EQ(Holders("y"), Ids());
  EXPECT_TRUE(Announce("a", "y", 1, true).ok());
  EXPECT_EQ(Holders("y"), Ids{"a"});
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("a", "x", 1, false)));
}

TEST_P(DirectoryConformance, ARenewalProlongsTheLease) {
  ASSERT_TRUE(Join("a", 1, kShort, {}).ok());
  EXPECT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  Pass(kShort * 2);
  EXPECT_EQ(NodeIds(), Ids{"a"});
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, LeavingEndsANodesLifeAtOnce) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  EXPECT_TRUE(Leave("a").ok());
  EXPECT_EQ(NodeIds(), Ids{"b"});
  EXPECT_EQ(Holders("x"), Ids());
  EXPECT_TRUE(absl::IsNotFound(Announce("a", "x")));
  EXPECT_TRUE(Join("a")->entered);
  EXPECT_EQ(Holders("x"), Ids());
  EXPECT_TRUE(Announce("b", "x", 2).ok());
}

TEST_P(DirectoryConformance, ASilentNodeMayLeave) {
  ASSERT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Join("a", 1, kShort, kLong).ok());
  Pass(kShort * 2);
  EXPECT_TRUE(Leave("a").ok());
  EXPECT_TRUE(Announce("b", "x", 2).ok());
}

TEST_P(DirectoryConformance, AnEarlierLifeCannotEndALaterOne) {
  ASSERT_TRUE(Join("a", 2).ok());
  ASSERT_TRUE(Announce("a", "x").ok());
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
  std::vector<AnswerOf<Joined>> joins;
  const size_t most = backend_->most_nodes();
  for (size_t i = 0; i < most; ++i) {
    joins.push_back(StartJoin(here(), JoinOf(Node("n" + std::to_string(i)))));
    if (i % 256 == 255) (void)Await(joins.back());
  }
  for (const auto& join : joins) EXPECT_TRUE(Await(join).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Join("one-more").status()));
  EXPECT_FALSE(Join("n0")->entered);
  EXPECT_EQ(Nodes()->size(), most);
  EXPECT_TRUE(Leave("n1").ok());
  EXPECT_TRUE(Join("one-more")->entered);
}

}  // namespace tokamak::directory
