// What every directory promises about objects and who holds them.
#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {

using Ids = std::vector<NodeId>;

TEST_P(DirectoryConformance, WhatOneNodeAnnouncesAnotherLocates) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce("x", "a", 1000, 24).ok());
  const auto info = Await(StartLocate(there(), "x", {}, kDeadline));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->data_size, 1000u);
  EXPECT_EQ(info->metadata_size, 24u);
  EXPECT_EQ(info->holders, Ids{"a"});
}

TEST_P(DirectoryConformance, AllHoldersAreNamed) {
  for (const char* node : {"a", "b", "c"}) {
    ASSERT_TRUE(Join(node).ok());
    ASSERT_TRUE(Announce("x", node).ok());
  }
  EXPECT_EQ(Holders("x"), (Ids{"a", "b", "c"}));
}

TEST_P(DirectoryConformance, AnnouncingTwiceIsAnnouncingOnce) {
  ASSERT_TRUE(Join("a").ok());
  EXPECT_TRUE(Announce("x", "a").ok());
  EXPECT_TRUE(Announce("x", "a").ok());
  EXPECT_EQ(Holders("x"), Ids{"a"});
  ASSERT_TRUE(Withdraw("x", "a").ok());
  EXPECT_EQ(Holders("x"), Ids());
}

TEST_P(DirectoryConformance, WithoutALeaseNothingIsAnnounced) {
  EXPECT_TRUE(absl::IsNotFound(Announce("x", "a")));
  EXPECT_EQ(Holders("x"), Ids());
}

TEST_P(DirectoryConformance, SizesAreKeptToTheLastByte) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce("x", "a", UINT64_MAX, UINT64_MAX - 1).ok());
  ASSERT_TRUE(Announce("empty", "a", 0, 0).ok());
  EXPECT_EQ(Locate("x")->data_size, UINT64_MAX);
  EXPECT_EQ(Locate("x")->metadata_size, UINT64_MAX - 1);
  EXPECT_EQ(Locate("empty")->data_size, 0u);
}

TEST_P(DirectoryConformance, OtherSizesAreRefused) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("x", "a", 100, 10).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Announce("x", "b", 101, 10)));
  EXPECT_TRUE(absl::IsInvalidArgument(Announce("x", "b", 100, 11)));
  EXPECT_TRUE(absl::IsInvalidArgument(Announce("x", "a", 99, 10)));
  EXPECT_EQ(Holders("x"), Ids{"a"});
  EXPECT_EQ(Locate("x")->data_size, 100u);
}

TEST_P(DirectoryConformance, TheFirstSizesStayAsLongAsAnybodyHoldsTheObject) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("x", "a", 100, 10).ok());
  ASSERT_TRUE(Announce("x", "b", 100, 10).ok());
  ASSERT_TRUE(Withdraw("x", "a").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Announce("x", "a", 200, 10)));
  EXPECT_EQ(Locate("x")->data_size, 100u);
}

TEST_P(DirectoryConformance, AnObjectThatNobodyHoldsIsForgotten) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce("x", "a", 100, 10).ok());
  ASSERT_TRUE(Withdraw("x", "a").ok());
  EXPECT_EQ(Holders("x"), Ids());
  EXPECT_TRUE(Announce("x", "a", 200, 20).ok());
  EXPECT_EQ(Locate("x")->data_size, 200u);
}

TEST_P(DirectoryConformance, AnObjectWhoseHoldersAreGoneMayComeBackWithOtherSizes) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("x", "a", 100, 10).ok());
  ASSERT_TRUE(Leave("a").ok());
  EXPECT_TRUE(Announce("x", "b", 200, 20).ok());
  EXPECT_EQ(Locate("x")->data_size, 200u);
  EXPECT_EQ(Holders("x"), Ids{"b"});
}

TEST_P(DirectoryConformance, WithdrawingWhatIsNotHeldIsNoError) {
  EXPECT_TRUE(Withdraw("x", "a").ok());
  ASSERT_TRUE(Join("a").ok());
  EXPECT_TRUE(Withdraw("x", "a").ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  EXPECT_TRUE(Withdraw("x", "b").ok());
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, AnotherNodeMayWithdrawAStaleHolder) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  ASSERT_TRUE(Announce("x", "b").ok());
  const auto withdrawn =
      Start<absl::Status>([&](auto done) { there().Withdraw(base::ObjectId::FromName("x"), "a", kDeadline, done); });
  EXPECT_TRUE(Await(withdrawn).ok());
  EXPECT_EQ(Holders("x"), Ids{"b"});
}

TEST_P(DirectoryConformance, HoldersBeyondTheBoundAreNotNamed) {
  for (size_t i = 0; i <= kMaxHolders; ++i) {
    const NodeId node = "n" + std::to_string(i);
    ASSERT_TRUE(Join(node).ok());
    EXPECT_TRUE(Announce("x", node).ok());
  }
  EXPECT_EQ(Holders("x").size(), kMaxHolders);
}

TEST_P(DirectoryConformance, ManyCallsAtOnceAreAllAnswered) {
  ASSERT_TRUE(Join("a").ok());
  std::vector<std::shared_ptr<Answer<absl::Status>>> announced;
  std::vector<std::shared_ptr<Answer<absl::StatusOr<ObjectInfo>>>> located;
  for (int i = 0; i < 500; ++i) {
    announced.push_back(StartAnnounce(here(), std::to_string(i), 1, 1, "a", kDeadline));
    located.push_back(StartLocate(here(), std::to_string(i), kLong, kDeadline));
  }
  for (const auto& answer : announced) EXPECT_TRUE(Await(answer).ok());
  for (const auto& answer : located) EXPECT_TRUE(Await(answer).ok());
}

TEST_P(DirectoryConformance, ACallbackMayCallAgain) {
  auto located = std::make_shared<Answer<absl::StatusOr<ObjectInfo>>>();
  const auto note = Note(located);
  const base::ObjectId x = base::ObjectId::FromName("x");
  here().Join(Node("a"), kLong, kDeadline, [&](absl::StatusOr<JoinResult>) {
    here().Announce(x, 1, 1, "a", kDeadline, [&](const absl::Status&) { here().Locate(x, {}, kDeadline, note); });
  });
  EXPECT_TRUE(Await(located).ok());
}

}  // namespace tokamak::directory
