// Every directory's promise to a node that waits for an object.
#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {

TEST_P(DirectoryConformance, WithoutAWaitAnUnknownObjectIsNotFoundAtOnce) {
  const auto located = StartLocate(here(), "x", {});
  EXPECT_TRUE(absl::IsNotFound(Await(located).status()));
}

TEST_P(DirectoryConformance, AWaitEndsWhenTheObjectIsAnnounced) {
  ASSERT_TRUE(Join("a").ok());
  const auto located = StartLocate(there(), "x", kLong);
  Pass(kShort);
  EXPECT_FALSE(located->answered());
  ASSERT_TRUE(Announce("a", "x").ok());
  const auto info = Await(located);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->data_size, 100u);
  EXPECT_EQ(info->metadata_size, 10u);
  EXPECT_EQ(info->holders, Ids{"a"});
}

TEST_P(DirectoryConformance, AWaitForWhatIsThereEndsAtOnce) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  EXPECT_TRUE(Locate("x", kLong).ok());
}

TEST_P(DirectoryConformance, AllWhoWaitForAnObjectAreTold) {
  ASSERT_TRUE(Join("a").ok());
  std::vector<AnswerOf<Located>> waiting;
  for (int i = 0; i < 10; ++i) waiting.push_back(StartLocate(i % 2 == 0 ? here() : there(), "x", kLong));
  Pass(kShort);
  ASSERT_TRUE(Announce("a", "x").ok());
  for (const auto& answer : waiting) EXPECT_TRUE(Await(answer).ok());
}

TEST_P(DirectoryConformance, WhoWaitsForAnotherObjectGoesOnWaiting) {
  ASSERT_TRUE(Join("a").ok());
  const auto x = StartLocate(here(), "x", kLong);
  const auto y = StartLocate(here(), "y", kLong);
  ASSERT_TRUE(Announce("a", "y").ok());
  EXPECT_TRUE(Await(y).ok());
  EXPECT_FALSE(x->answered());
  ASSERT_TRUE(Announce("a", "x").ok());
  EXPECT_TRUE(Await(x).ok());
}

TEST_P(DirectoryConformance, AWaitForWhatDoesNotComeEndsAfterItsTimeAndNotBefore) {
  const base::Time asked = loop().Now();
  const auto located = StartLocate(here(), "x", kShort);
  EXPECT_TRUE(absl::IsNotFound(Await(located).status()));
  EXPECT_GE(loop().Now() - asked, kShort);
}

TEST_P(DirectoryConformance, AWaitGoesOnWhenAnotherForTheSameObjectEnds) {
  ASSERT_TRUE(Join("a").ok());
  const auto patient = StartLocate(here(), "x", kLong);
  EXPECT_TRUE(absl::IsNotFound(Await(StartLocate(here(), "x", kShort)).status()));
  EXPECT_FALSE(patient->answered());
  ASSERT_TRUE(Announce("a", "x").ok());
  EXPECT_TRUE(Await(patient).ok());
}

TEST_P(DirectoryConformance, WaitingAgainAndAgainWorks) {
  ASSERT_TRUE(Join("a").ok());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(absl::IsNotFound(Locate("x", base::Milliseconds(2)).status()));
    const auto waiting = StartLocate(here(), "x", kLong);
    const auto generation = static_cast<uint64_t>(i + 1);
    ASSERT_TRUE(Announce("a", "x", generation).ok());
    EXPECT_TRUE(Await(waiting).ok());
    ASSERT_TRUE(Withdraw("a", "x", generation).ok());
  }
}

TEST_P(DirectoryConformance, AHolderThatIsGoneEndsNoWait) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Leave("a").ok());
  const auto waiting = StartLocate(here(), "x", kLong);
  Pass(kShort);
  EXPECT_FALSE(waiting->answered());
  ASSERT_TRUE(Announce("b", "x", 2).ok());
  EXPECT_EQ(Await(waiting)->holders, Ids{"b"});
}

TEST_P(DirectoryConformance, ASilentHolderThatIsBackEndsAWait) {
  ASSERT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Join("a", 1, kShort, kLong).ok());
  Pass(kShort * 2);
  const auto waiting = StartLocate(there(), "x", kLong);
  Pass(kShort);
  EXPECT_FALSE(waiting->answered());
  ASSERT_TRUE(Join("a").ok());
  EXPECT_EQ(Await(waiting)->holders, Ids{"a"});
}

TEST_P(DirectoryConformance, WhoIsComingEndsNoWaitBeforeItHasTheObject) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Locate("x", {}, "b").ok());
  ASSERT_TRUE(Withdraw("a", "x").ok());
  const auto waiting = StartLocate(there(), "x", kLong);
  Pass(kShort);
  EXPECT_FALSE(waiting->answered());
  ASSERT_TRUE(Announce("b", "x", 1, true).ok());
  EXPECT_EQ(Await(waiting)->holders, Ids{"b"});
}

TEST_P(DirectoryConformance, AWaitEntersThePullerAsComing) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  const auto waiting = StartLocate(there(), "x", kLong, kDeadline, "b");
  Pass(kShort);
  ASSERT_TRUE(Announce("a", "x").ok());
  EXPECT_EQ(Await(waiting)->holders, Ids{"a"});
  EXPECT_EQ(Delete("x")->holders, (Ids{"a", "b"}));
}

TEST_P(DirectoryConformance, AWaitThatWasDroppedIsNotAnsweredAndEntersNobody) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  const auto dropped = StartLocate(here(), "x", kLong, kDeadline, "b");
  const auto other = StartLocate(here(), "x", kLong);
  Pass(kShort);
  dropped->Cancel();
  Pass(kShort);
  ASSERT_TRUE(Announce("a", "x").ok());
  EXPECT_TRUE(Await(other).ok());
  Pass(kShort);
  EXPECT_EQ(Delete("x")->holders, Ids{"a"});
}

TEST_P(DirectoryConformance, CallsThatAreDroppedAreNotAnswered) {
  ASSERT_TRUE(Join("a").ok());
  const auto join = StartJoin(here(), JoinOf(Node("b")));
  const auto update = StartUpdate(here(), "a", {AnnouncementOf("x")});
  const auto locate = StartLocate(here(), "x", {});
  const auto waiting = StartLocate(here(), "y", kShort);
  const auto deleted = StartDelete(here(), {base::ObjectId::FromName("z"), base::kNoGeneration, {}, ""});
  join->Cancel();
  update->Cancel();
  locate->Cancel();
  waiting->Cancel();
  deleted->Cancel();
  Pass(kShort * 2);
  EXPECT_TRUE(Announce("a", "other").ok());
}

// Programs that end while they wait for thousands of objects leave nothing behind.
TEST_P(DirectoryConformance, WaitsThatWereDroppedTakeNoRoom) {
  ASSERT_TRUE(Join("a").ok());
  constexpr int kRounds = 40, kObjects = 2048;  // together more than may wait
  for (int round = 0; round < kRounds; ++round) {
    std::vector<AnswerOf<Located>> waiting;
    for (int i = 0; i < kObjects; ++i) {
      waiting.push_back(StartLocate(here(), std::to_string(round) + "-" + std::to_string(i), kLong));
    }
    if (round % 8 == 0) Pass(kShort);
    for (const auto& answer : waiting) answer->Cancel();
  }
  const auto located = StartLocate(here(), "x", kLong);
  Pass(kShort);
  ASSERT_TRUE(Announce("a", "x").ok());
  EXPECT_TRUE(Await(located).ok());
}

TEST_P(DirectoryConformance, WhatALaterLifeAnnouncesEndsAWait) {
  ASSERT_TRUE(Join("a", 1).ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Join("a", 2).ok());
  const auto waiting = StartLocate(here(), "x", kLong);
  Pass(kShort);
  ASSERT_TRUE(Announce("a", "x", 2).ok());
  EXPECT_TRUE(Await(waiting).ok());
}

}  // namespace tokamak::directory
