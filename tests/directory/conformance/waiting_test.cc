// What every directory promises to who waits for an object.
#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {

using Ids = std::vector<NodeId>;

TEST_P(DirectoryConformance, WithoutAWaitAnUnknownObjectIsNotFoundAtOnce) {
  const auto located = StartLocate(here(), "x", {}, kDeadline);
  EXPECT_TRUE(absl::IsNotFound(Await(located).status()));
}

TEST_P(DirectoryConformance, AWaitEndsWhenTheObjectIsAnnounced) {
  ASSERT_TRUE(Join("a").ok());
  const auto located = StartLocate(there(), "x", kLong, kDeadline);
  Pass(kShort);
  EXPECT_FALSE(located->answered());
  ASSERT_TRUE(Announce("x", "a", 7, 8).ok());
  const auto info = Await(located);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->data_size, 7u);
  EXPECT_EQ(info->metadata_size, 8u);
  EXPECT_EQ(info->holders, Ids{"a"});
}

TEST_P(DirectoryConformance, AWaitForWhatIsThereEndsAtOnce) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  EXPECT_TRUE(Locate("x", kLong).ok());
}

TEST_P(DirectoryConformance, AllWhoWaitForAnObjectAreTold) {
  ASSERT_TRUE(Join("a").ok());
  std::vector<std::shared_ptr<Answer<absl::StatusOr<ObjectInfo>>>> waiting;
  for (int i = 0; i < 10; ++i) waiting.push_back(StartLocate(i % 2 == 0 ? here() : there(), "x", kLong, kDeadline));
  Pass(kShort);
  ASSERT_TRUE(Announce("x", "a").ok());
  for (const auto& answer : waiting) EXPECT_TRUE(Await(answer).ok());
}

TEST_P(DirectoryConformance, WhoWaitsForAnotherObjectGoesOnWaiting) {
  ASSERT_TRUE(Join("a").ok());
  const auto x = StartLocate(here(), "x", kLong, kDeadline);
  const auto y = StartLocate(here(), "y", kLong, kDeadline);
  ASSERT_TRUE(Announce("y", "a").ok());
  EXPECT_TRUE(Await(y).ok());
  EXPECT_FALSE(x->answered());
  ASSERT_TRUE(Announce("x", "a").ok());
  EXPECT_TRUE(Await(x).ok());
}

TEST_P(DirectoryConformance, AWaitInVainEndsAfterItsTimeAndNotBefore) {
  const base::Time asked = loop().Now();
  const auto located = StartLocate(here(), "x", kShort, kDeadline);
  EXPECT_TRUE(absl::IsNotFound(Await(located).status()));
  EXPECT_GE(loop().Now() - asked, kShort);
}

TEST_P(DirectoryConformance, AWaitGoesOnWhenAnotherForTheSameObjectEnds) {
  ASSERT_TRUE(Join("a").ok());
  const auto patient = StartLocate(here(), "x", kLong, kDeadline);
  EXPECT_TRUE(absl::IsNotFound(Await(StartLocate(here(), "x", kShort, kDeadline)).status()));
  EXPECT_FALSE(patient->answered());
  ASSERT_TRUE(Announce("x", "a").ok());
  EXPECT_TRUE(Await(patient).ok());
}

TEST_P(DirectoryConformance, WaitingAgainAndAgainWorks) {
  ASSERT_TRUE(Join("a").ok());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(absl::IsNotFound(Locate("x", base::Milliseconds(2)).status()));
    const auto waiting = StartLocate(here(), "x", kLong, kDeadline);
    ASSERT_TRUE(Announce("x", "a").ok());
    EXPECT_TRUE(Await(waiting).ok());
    ASSERT_TRUE(Withdraw("x", "a").ok());
  }
}

TEST_P(DirectoryConformance, AHolderThatIsGoneEndsNoWait) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  ASSERT_TRUE(Leave("a").ok());
  const auto waiting = StartLocate(here(), "x", kLong, kDeadline);
  Pass(kShort);
  EXPECT_FALSE(waiting->answered());
  ASSERT_TRUE(Announce("x", "b").ok());
  EXPECT_EQ(Await(waiting)->holders, Ids{"b"});
}

TEST_P(DirectoryConformance, WhatAReturningNodeAnnouncesAgainEndsAWait) {
  ASSERT_TRUE(Join("a", 1).ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  ASSERT_TRUE(Join("a", 2).ok());
  const auto waiting = StartLocate(here(), "x", kLong, kDeadline);
  Pass(kShort);
  ASSERT_TRUE(Announce("x", "a").ok());
  EXPECT_TRUE(Await(waiting).ok());
}

}  // namespace tokamak::directory
