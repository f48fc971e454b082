// Every directory's promise about deletion: deleted content never comes back, and an id is free
// when nobody has the old content.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {

constexpr base::Generation kFirst{1};

TEST_P(DirectoryConformance, DeletingEndsWhenAllHoldersHaveConfirmed) {
  JoinAndAnnounce({"a", "b"}, "x");
  const Deleted begun = Delete("x");
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_EQ(begun->generation, kFirst);
  EXPECT_EQ(begun->holders, (Ids{"a", "b"}));
  EXPECT_EQ(begun->silent, Ids());
  EXPECT_EQ(Holders("x"), Ids());
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("a", "x", 2)));
  EXPECT_EQ(Delete("x", 1, {"a"}, "b")->holders, Ids()) << "no more after b";
  EXPECT_EQ(Delete("x", 1)->holders, Ids{"b"});
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("a", "x", 2)));
  const Deleted ended = Delete("x", 1, {"b"});
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_TRUE(ended->holders.empty() && ended->silent.empty());
  EXPECT_TRUE(Announce("a", "x", 2).ok());
}

TEST_P(DirectoryConformance, AWithdrawalConfirmsADeletion) {
  JoinAndAnnounce({"a", "b"}, "x");
  ASSERT_TRUE(Delete("x").ok());
  EXPECT_TRUE(Withdraw("a", "x").ok());
  EXPECT_EQ(Delete("x", 1)->holders, Ids{"b"});
  EXPECT_TRUE(Withdraw("b", "x").ok());
  EXPECT_TRUE(Announce("a", "x", 2).ok());
}

TEST_P(DirectoryConformance, WhoeverAnnouncesADeletedContentIsToldAndMustDropItToo) {
  JoinAndAnnounce({"a"}, "x");
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Delete("x").ok());
  EXPECT_TRUE(absl::IsAborted(Announce("b", "x", 1, true)));
  EXPECT_EQ(Delete("x", 1, {"a"})->holders, Ids{"b"});
  EXPECT_TRUE(Withdraw("b", "x").ok());
  EXPECT_TRUE(Delete("x", 1)->holders.empty());
  EXPECT_TRUE(absl::IsAborted(Announce("b", "x", 1, true))) << "remembered after the end";
  EXPECT_TRUE(Announce("a", "x", 2).ok());
  EXPECT_TRUE(absl::IsAborted(Announce("b", "x", 1, true))) << "whatever has the id now";
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

// The new content is not lost: its announcement only has to wait.
TEST_P(DirectoryConformance, AnEstablishedContentMayComeWhenADeletionHasEnded) {
  ASSERT_TRUE(Join("b").ok());
  PassRecovery();
  JoinAndAnnounce({"a"}, "x");
  ASSERT_TRUE(Delete("x").ok());
  EXPECT_TRUE(absl::IsUnavailable(Announce("b", "x", 2, true)));
  ASSERT_TRUE(Withdraw("a", "x").ok());
  EXPECT_TRUE(Announce("b", "x", 2, true).ok());
  EXPECT_EQ(Holders("x"), Ids{"b"});
}

TEST_P(DirectoryConformance, WhoIsComingIsToldOfADeletion) {
  JoinAndAnnounce({"a"}, "x");
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Locate("x", {}, "b").ok());
  EXPECT_EQ(Delete("x")->holders, (Ids{"a", "b"}));
  EXPECT_TRUE(absl::IsAborted(Announce("b", "x", 1, true)));
}

TEST_P(DirectoryConformance, AnObjectOfWhichOnlyAPullIsUnderWayCanBeDeleted) {
  JoinAndAnnounce({"a"}, "x");
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Locate("x", {}, "b").ok());
  ASSERT_TRUE(Withdraw("a", "x").ok());
  EXPECT_EQ(Delete("x")->holders, Ids{"b"});
}

TEST_P(DirectoryConformance, DeletingWhatIsNotThereIsNotFound) {
  ASSERT_TRUE(Join("a").ok());
  PassRecovery();
  EXPECT_TRUE(absl::IsNotFound(Delete("x").status()));
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Delete("x").ok());
  EXPECT_EQ(Delete("x")->generation, kFirst) << "it is still under way";
  ASSERT_TRUE(Delete("x", 1, {"a"}).ok());
  EXPECT_TRUE(absl::IsNotFound(Delete("x").status()));
  EXPECT_TRUE(Delete("x", 1).ok()) << "it is over, whoever asks";
}

TEST_P(DirectoryConformance, AContentMayBeDeletedBeforeItIsAnnounced) {
  JoinAndAnnounce({"a"}, "x");
  PassRecovery();
  const Deleted deleted = Delete("x", 2);
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_TRUE(deleted->holders.empty() && deleted->silent.empty());
  EXPECT_EQ(Holders("x"), Ids{"a"}) << "another generation";
  ASSERT_TRUE(Delete("y", 1).ok());
  EXPECT_TRUE(absl::IsAborted(Announce("a", "y", 1)));
  EXPECT_TRUE(Announce("a", "y", 2).ok());
}

TEST_P(DirectoryConformance, OfMoreHoldersThanCanBeNamedEachIsToldOnce) {
  constexpr size_t kHolders = kMaxHoldersNamed + 4;
  for (size_t i = 0; i < kHolders; ++i) {
    const NodeId node = "n" + std::to_string(i);
    ASSERT_TRUE(Join(node).ok());
    ASSERT_TRUE(Announce(node, "x", 1, i > 0).ok());
  }
  Deleted step = Delete("x");
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->holders.size(), kMaxHoldersNamed);
  std::set<NodeId> told;
  int steps = 0;
  for (; step.ok() && !step->holders.empty() && steps < 10; ++steps) {
    EXPECT_TRUE(std::is_sorted(step->holders.begin(), step->holders.end()));
    for (const NodeId& node : step->holders) EXPECT_TRUE(told.insert(node).second) << node;
    const Ids dropped = step->holders;
    step = Delete("x", 1, dropped, dropped.back());
  }
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(told.size(), kHolders);
  step = Delete("x", 1);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_TRUE(step->holders.empty() && step->silent.empty());
  EXPECT_TRUE(Announce("n67", "x", 2).ok());
  EXPECT_EQ(Holders("x"), Ids{"n67"}) << "no old copy is left";
}

TEST_P(DirectoryConformance, ASilentHolderDelaysADeletionUntilItIsBack) {
  ASSERT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Join("a", 1, kShort, kLong).ok());
  Pass(kShort * 2);
  const Deleted begun = Delete("x");
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_EQ(begun->holders, Ids());
  EXPECT_EQ(begun->silent, Ids{"a"});
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("b", "x", 2)));
  const Joined back = Join("a");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_FALSE(back->entered);
  EXPECT_EQ(back->drops, std::vector<base::ObjectVersion>{Version("x", 1)});
  EXPECT_TRUE(absl::IsAborted(Announce("a", "x", 1, true)));
  ASSERT_TRUE(Withdraw("a", "x").ok());
  EXPECT_TRUE(Join("a")->drops.empty());
  EXPECT_TRUE(Announce("b", "x", 2).ok());
}

TEST_P(DirectoryConformance, ANodeThatIsGoneDelaysNoDeletion) {
  ASSERT_TRUE(Join("a", 1, kLong).ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Join("a", 1, kShort, kShort).ok());
  ASSERT_TRUE(Delete("x").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("b", "x", 2)));
  Pass(kShort * 3);
  const Deleted ended = Delete("x", 1);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_TRUE(ended->holders.empty() && ended->silent.empty());
  EXPECT_TRUE(Announce("b", "x", 2).ok());
  EXPECT_TRUE(Join("a")->drops.empty());
  EXPECT_TRUE(absl::IsAborted(Announce("a", "x", 1, true)));
}

// A content that is displaced is deleted as well, and nobody waits for that until somebody wants
// the id.
TEST_P(DirectoryConformance, DeletingGoesOnWithWhatHadTheIdBefore) {
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("b", "x", 2).ok());
  ASSERT_TRUE(Return("a").ok());
  ASSERT_TRUE(Announce("a", "x", 1, true).ok());
  ASSERT_EQ(Holders("x"), Ids{"a"});
  ASSERT_TRUE(Return("a", true).ok());
  PassRecovery();
  const Deleted begun = Delete("x");
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_EQ(begun->generation, kFirst);
  EXPECT_EQ(begun->holders, Ids{"a"});
  const Deleted next = Delete("x", 1, {"a"}, "z");
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->generation, base::Generation{2});
  EXPECT_EQ(next->holders, Ids{"b"}) << "names after z were of the other";
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("a", "x", 3)));
  const Deleted ended = Delete("x", 2, {"b"});
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_TRUE(ended->holders.empty() && ended->silent.empty());
  EXPECT_TRUE(Announce("a", "x", 3).ok());
}

// ---- more deletions than are remembered

// `x` is on `a` and `b`, `left` on `a` alone. `a` is gone when `x` is deleted.
void DirectoryConformance::DeleteWhileGone(std::string* mark) {
  JoinAndAnnounce({"a", "b"}, "x");
  PassRecovery();
  ASSERT_TRUE(Announce("a", "left").ok());
  ASSERT_TRUE(Announce("a", "shared").ok());
  ASSERT_TRUE(Announce("b", "shared", 1, true).ok());
  const Joined last = Join("a", 1, kShort, kShort);
  ASSERT_TRUE(last.ok()) << last.status();
  *mark = last->mark;
  Pass(kShort * 3);
  ASSERT_EQ(Delete("x")->holders, Ids{"b"});
  ASSERT_TRUE(Delete("x", 1, {"b"})->holders.empty());
}

TEST_P(DirectoryConformance, WhatWasDeletedWhileANodeWasGoneStaysDeletedHoweverMuchWasDeletedSince) {
  std::string mark;
  ASSERT_NO_FATAL_FAILURE(DeleteWhileGone(&mark));
  DeleteMoreThanIsRemembered("b");
  const Joined back = Return("a", false, mark);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->entered && back->outdated);
  EXPECT_EQ(back->mark, mark) << "it has not told all yet";
  const absl::Status why = Announce("a", "x", 1, true);
  EXPECT_TRUE(absl::IsAborted(why)) << why;
  EXPECT_TRUE(absl::StrContains(why.message(), "may have been deleted while this node was gone")) << why;
  EXPECT_TRUE(absl::IsAborted(Announce("a", "left", 1, true))) << "nobody knows whether it was deleted";
  EXPECT_EQ(Holders("x"), Ids());
  EXPECT_TRUE(Announce("a", "shared", 1, true).ok()) << "it was not";
  EXPECT_EQ(Holders("shared"), (Ids{"a", "b"}));
  EXPECT_TRUE(Announce("a", "new").ok());
  EXPECT_TRUE(Return("a", false, mark)->outdated) << "a renewal changes nothing";
  EXPECT_TRUE(absl::IsAborted(Announce("a", "left", 1, true)));
  const Joined complete = Return("a", true, mark);
  ASSERT_TRUE(complete.ok()) << complete.status();
  EXPECT_FALSE(complete->outdated);
  EXPECT_NE(complete->mark, mark);
  EXPECT_TRUE(Announce("a", "brought", 1, true).ok());
}

TEST_P(DirectoryConformance, WhoIsStillTellingWhenWhatItMissedIsForgottenIsOutdatedFromThenOn) {
  std::string mark;
  ASSERT_NO_FATAL_FAILURE(DeleteWhileGone(&mark));
  ASSERT_FALSE(Return("a", false, mark)->outdated);
  ASSERT_NO_FATAL_FAILURE(DeleteMoreThanIsRemembered("b"));
  EXPECT_TRUE(absl::IsAborted(Announce("a", "x", 1, true)));
  EXPECT_TRUE(absl::IsAborted(Announce("a", "left", 1, true)));
  EXPECT_TRUE(Return("a", false, mark)->outdated);
  EXPECT_FALSE(Return("a", true, mark)->outdated);
}

TEST_P(DirectoryConformance, AnAnnouncementThatWasLongOnItsWayDoesNotBringBackWhatWasDeletedMeanwhile) {
  JoinAndAnnounce({"a", "b"}, "x");
  ASSERT_TRUE(Announce("b", "shared").ok());
  PassRecovery();
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Delete("x").ok());
  ASSERT_TRUE(Delete("x", 1, {"a", "b"})->holders.empty());
  EXPECT_TRUE(absl::IsAborted(Announce("a", "x", 1, true)));
  ASSERT_NO_FATAL_FAILURE(DeleteMoreThanIsRemembered("b"));
  for (const bool established : {true, false}) {
    const absl::Status late = Announce("a", "x", 1, established);
    EXPECT_TRUE(absl::IsFailedPrecondition(late)) << late;
    EXPECT_TRUE(absl::StrContains(late.message(), "say it again")) << late;
  }
  EXPECT_EQ(Holders("x"), Ids());
  EXPECT_TRUE(absl::IsFailedPrecondition(Announce("a", "new")));
  EXPECT_TRUE(Announce("a", "shared", 1, true).ok()) << "it was not deleted";
  EXPECT_TRUE(Withdraw("a", "shared").ok());
  ASSERT_TRUE(Join("a").ok());
  EXPECT_TRUE(Announce("a", "new").ok());
}

TEST_P(DirectoryConformance, ANodeThatWasGoneWhileLittleWasDeletedKeepsWhatWasNot) {
  std::string mark;
  ASSERT_NO_FATAL_FAILURE(DeleteWhileGone(&mark));
  const Joined back = Return("a", false, mark);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->entered && !back->outdated);
  EXPECT_TRUE(absl::IsAborted(Announce("a", "x", 1, true)));
  EXPECT_TRUE(Announce("a", "left", 1, true).ok());
  EXPECT_EQ(Holders("left"), Ids{"a"});
}

TEST_P(DirectoryConformance, ANodeThatWasGoneAgainBeforeItHadToldAllHasStillMissedWhatItHadMissed) {
  std::string mark;
  ASSERT_NO_FATAL_FAILURE(DeleteWhileGone(&mark));
  JoinRequest request = JoinOf(Node("a"), kShort, kShort);
  request.returning = true;
  request.mark = mark;
  const Joined back = Join(request);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_FALSE(back->outdated);
  Pass(kShort * 3);
  DeleteMoreThanIsRemembered("b");
  EXPECT_TRUE(Return("a", false, back->mark)->outdated);
  EXPECT_TRUE(absl::IsAborted(Announce("a", "x", 1, true)));
}

TEST_P(DirectoryConformance, AfterARestartNobodyIsOutdatedWhoIsBackInTime) {
  JoinAndAnnounce({"a"}, "x");
  const std::string mark = Join("a")->mark;
  Pass(kShort);
  backend_->Restart();
  ASSERT_TRUE(Join("b").ok());
  ASSERT_NO_FATAL_FAILURE(DeleteMoreThanIsRemembered("b"));
  ASSERT_NO_FATAL_FAILURE(DeleteMoreThanIsRemembered("b"));
  EXPECT_FALSE(Return("a", false, mark)->outdated) << "only what is new was deleted";
  EXPECT_TRUE(Announce("a", "x", 1, true).ok());
}

TEST_P(DirectoryConformance, AfterARestartANodeIsOutdatedThatIsBackAfterMoreDeletionsThanAreRemembered) {
  JoinAndAnnounce({"a"}, "x");
  const std::string mark = Join("a")->mark;
  Pass(kShort);
  backend_->Restart();
  ASSERT_TRUE(Join("b").ok());
  PassRecovery();
  ASSERT_NO_FATAL_FAILURE(DeleteMoreThanIsRemembered("b"));
  EXPECT_FALSE(Return("c", false, mark)->outdated) << "all of them are remembered";
  ASSERT_NO_FATAL_FAILURE(DeleteMoreThanIsRemembered("b"));
  for (const char* said : {mark.c_str(), "", "no mark of ours", "1.", ".1"}) {
    ASSERT_TRUE(Leave("a").ok());
    EXPECT_TRUE(Return("a", false, said)->outdated) << said;
    EXPECT_TRUE(absl::IsAborted(Announce("a", "x", 1, true)));
  }
}

TEST_P(DirectoryConformance, ALaterLifeHasNothingToDrop) {
  JoinAndAnnounce({"a", "b"}, "x");
  ASSERT_TRUE(Delete("x").ok());
  EXPECT_TRUE(Join("a", 2)->drops.empty());
  EXPECT_EQ(Delete("x", 1)->holders, Ids{"b"});
}

TEST_P(DirectoryConformance, WhatANodeHasToDropIsToldWheneverItJoins) {
  ASSERT_TRUE(Join("a").ok());
  constexpr size_t kObjects = kMaxDropsTold + 10;
  for (size_t i = 0; i < kObjects; ++i) {
    ASSERT_TRUE(Announce("a", std::to_string(i)).ok());
    ASSERT_TRUE(Delete(std::to_string(i)).ok());
  }
  size_t dropped = 0;
  for (int joins = 0; joins < 10 && dropped < kObjects; ++joins) {
    const Joined joined = Join("a");
    ASSERT_TRUE(joined.ok()) << joined.status();
    EXPECT_LE(joined->drops.size(), kMaxDropsTold);
    std::vector<directory::Update> updates;
    for (const base::ObjectVersion& version : joined->drops) {
      updates.push_back({directory::Update::Kind::kWithdraw, version, 0, 0});
    }
    for (const absl::Status& status : Update("a", updates)) EXPECT_TRUE(status.ok());
    dropped += joined->drops.size();
  }
  EXPECT_EQ(dropped, kObjects);
  EXPECT_TRUE(Join("a")->drops.empty());
}

TEST_P(DirectoryConformance, AWaitIsNotEndedByADeletedContentButByTheNext) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  ASSERT_TRUE(Delete("x").ok());
  const auto waiting = StartLocate(there(), "x", kLong);
  EXPECT_TRUE(absl::IsAborted(Announce("b", "x", 1, true)));
  Pass(kShort);
  EXPECT_FALSE(waiting->answered());
  ASSERT_TRUE(Delete("x", 1, {"a", "b"}).ok());
  ASSERT_TRUE(Announce("b", "x", 2).ok());
  EXPECT_EQ(Await(waiting)->generation, base::Generation{2});
}

}  // namespace tokamak::directory
