// Every directory's promise after a restart, while out of reach and when dropped.
#include <algorithm>

#include "absl/strings/match.h"
#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {

static bool IsOutage(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

TEST_P(DirectoryConformance, AfterARestartANodeEntersAgain) {
  JoinAndAnnounce({"a"}, "x");
  backend_->Restart();
  EXPECT_TRUE(Return("a")->entered);
  EXPECT_EQ(Holders("x"), Ids());
  ASSERT_TRUE(Announce("a", "x", 1, true).ok());
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, AfterARestartNothingIsAnnouncedBeforeJoining) {
  ASSERT_TRUE(Join("a").ok());
  backend_->Restart();
  EXPECT_TRUE(absl::IsNotFound(Announce("a", "x")));
}

TEST_P(DirectoryConformance, AfterARestartWhatMayBeOlderIsDeletedOnlyWhenAllIsKnown) {
  JoinAndAnnounce({"a"}, "x");
  backend_->Restart();
  ASSERT_TRUE(Return("a").ok());
  EXPECT_TRUE(absl::IsUnavailable(Delete("x").status())) << "it has not been announced yet";
  EXPECT_TRUE(absl::IsUnavailable(Delete("x", 1).status()));
  ASSERT_TRUE(Announce("a", "x", 1, true).ok());
  EXPECT_TRUE(absl::IsUnavailable(Delete("x").status())) << "others may hold it";
  ASSERT_TRUE(Announce("a", "new").ok());
  EXPECT_EQ(Delete("new")->holders, Ids{"a"}) << "nobody else can";
  ASSERT_TRUE(Return("a", /*complete=*/true).ok());
  EXPECT_TRUE(absl::IsUnavailable(Delete("x").status())) << "nodes that have not joined yet may hold it";
  PassRecovery();
  EXPECT_EQ(Delete("x")->holders, Ids{"a"});
  EXPECT_TRUE(absl::IsNotFound(Delete("y").status()));
}

// The directory before this one may have taken it in, and named it to others.
TEST_P(DirectoryConformance, AfterARestartWhatWasAnnouncedWithoutAnAnswerIsNotNew) {
  directory::Update unanswered = AnnouncementOf("x");
  unanswered.standing = Standing::kUnanswered;
  ASSERT_TRUE(Return("a").ok());
  ASSERT_TRUE(Return("b").ok());
  ASSERT_TRUE(Update("a", {unanswered}).front().ok());
  EXPECT_TRUE(absl::IsUnavailable(Delete("x").status())) << "others may hold it";
  EXPECT_TRUE(Announce("b", "x", 2, true).ok()) << "this one was certainly put before";
  EXPECT_EQ(Holders("x"), Ids{"b"});
  unanswered = AnnouncementOf("y");
  unanswered.standing = Standing::kUnanswered;
  ASSERT_TRUE(Announce("b", "y", 2).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Update("a", {unanswered}).front())) << "and this one perhaps never";
  ASSERT_TRUE(Return("a", /*complete=*/true).ok());
  ASSERT_TRUE(Return("b", /*complete=*/true).ok());
  PassRecovery();
  EXPECT_EQ(Delete("x")->holders, Ids{"b"});
}

// There may have been another before it, and nobody has had the time to say so.
TEST_P(DirectoryConformance, ADirectoryThatHasJustBegunCannotSayThatNobodyHoldsAnObject) {
  ASSERT_TRUE(Join("a").ok());
  const absl::Status why = Delete("x").status();
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_TRUE(absl::StartsWith(why.message(), "the directory began ")) << why;
  EXPECT_TRUE(absl::StrContains(why.message(), " ago and is learning who holds what: try again in ")) << why;
  EXPECT_TRUE(absl::IsUnavailable(Delete("x", 1).status()));
  ASSERT_TRUE(Announce("a", "x").ok());
  EXPECT_EQ(Delete("x")->holders, Ids{"a"}) << "what it accepted first is deleted at once";
  PassRecovery();
  EXPECT_TRUE(absl::IsNotFound(Delete("y").status()));
}

TEST_P(DirectoryConformance, ANodeThatComesBackIsWaitedForUntilItHasToldAll) {
  ASSERT_TRUE(Join("a").ok());
  PassRecovery();
  ASSERT_TRUE(Return("b").ok());
  const absl::Status why = Delete("x").status();
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_TRUE(absl::StrContains(why.message(), "node b has not told yet all that it holds")) << why;
  ASSERT_TRUE(Return("b", /*complete=*/true).ok());
  EXPECT_TRUE(absl::IsNotFound(Delete("x").status()));
}

TEST_P(DirectoryConformance, ANodeThatComesBackIsWaitedForHoweverLongThatTakes) {
  ASSERT_TRUE(Join("a").ok());
  PassRecovery();
  ASSERT_TRUE(Return("b").ok());
  for (int i = 0; i < 3; ++i) {
    PassRecovery();
    ASSERT_FALSE(Return("b")->entered);
    EXPECT_TRUE(absl::IsUnavailable(Delete("x").status()));
  }
  ASSERT_TRUE(Announce("a", "x", 2).ok());
  EXPECT_TRUE(Announce("b", "x", 1, true).ok()) << "what was put and kept comes before what is new";
  EXPECT_EQ(Holders("x"), Ids{"b"});
  EXPECT_EQ(Join("a")->drops, std::vector<base::ObjectVersion>{Version("x", 2)});
  ASSERT_TRUE(Return("b", /*complete=*/true).ok());
  EXPECT_TRUE(absl::IsNotFound(Delete("y").status()));
}

TEST_P(DirectoryConformance, ANodeThatFellSilentBeforeItHadToldAllCountsUntilItIsGone) {
  ASSERT_TRUE(Join("a").ok());
  PassRecovery();
  ASSERT_TRUE(Return("b").ok());
  ASSERT_TRUE(Join("b", 1, kShort, kLong).ok());
  Pass(kShort * 2);
  EXPECT_TRUE(absl::IsUnavailable(Delete("x").status()));
  ASSERT_TRUE(Announce("a", "x", 2).ok());
  ASSERT_FALSE(Return("b")->entered);
  EXPECT_TRUE(Announce("b", "x", 1, true).ok());
  EXPECT_EQ(Holders("x"), Ids{"b"});
  ASSERT_TRUE(Join("b", 1, kShort, kShort).ok());
  Pass(kShort * 3);
  EXPECT_TRUE(absl::IsNotFound(Delete("y").status())) << "it is gone";
}

// Its first words are still those to the directory before.
TEST_P(DirectoryConformance, ANodeThatTheDirectoryDoesNotKnowHasNotToldAllWhateverItSays) {
  ASSERT_TRUE(Join("a").ok());
  PassRecovery();
  ASSERT_TRUE(Return("b", /*complete=*/true)->entered);
  EXPECT_TRUE(absl::IsUnavailable(Delete("x").status()));
  ASSERT_FALSE(Return("b", /*complete=*/true)->entered);
  EXPECT_TRUE(absl::IsNotFound(Delete("x").status()));
}

TEST_P(DirectoryConformance, AfterARestartWhatWasPutBeforeDisplacesWhatIsNew) {
  JoinAndAnnounce({"a"}, "x");
  backend_->Restart();
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("b", "x", 2).ok());
  ASSERT_TRUE(Return("a").ok());
  EXPECT_TRUE(Announce("a", "x", 1, true).ok());
  EXPECT_EQ(Locate("x")->generation, base::Generation{1});
  EXPECT_EQ(Holders("x"), Ids{"a"});
  EXPECT_EQ(Join("b")->drops, std::vector<base::ObjectVersion>{Version("x", 2)});
  EXPECT_TRUE(absl::IsAborted(Announce("b", "x", 2, true)));
  ASSERT_TRUE(Withdraw("b", "x", 2).ok());
  EXPECT_TRUE(Join("b")->drops.empty());
  EXPECT_TRUE(Announce("b", "x", 1, true).ok());
  EXPECT_EQ(Holders("x"), (Ids{"a", "b"}));
}

TEST_P(DirectoryConformance, AfterARestartTheOrderOfTheAnnouncementsDecidesNothing) {
  backend_->Restart();
  for (const char* node : {"a", "b", "c"}) ASSERT_TRUE(Return(node).ok());
  // `a` and `c` hold what was put before, `b` has put another content meanwhile.
  std::vector<NodeId> order = {"a", "b", "c"};
  int number = 0;
  do {
    const std::string object = std::to_string(++number);
    for (const NodeId& node : order) {
      const absl::Status status = node == "b" ? Announce(node, object, 2) : Announce(node, object, 1, true);
      EXPECT_TRUE(status.ok() || (node == "b" && absl::IsAlreadyExists(status))) << status;
    }
    EXPECT_EQ(Locate(object)->generation, base::Generation{1});
    EXPECT_EQ(Holders(object), (Ids{"a", "c"}));
    EXPECT_FALSE(Announce("b", object, 2).ok());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(DirectoryConformance, WhatWasPutAgainWhenItsHolderWasGoneIsNotDisplacedByIt) {
  JoinAndAnnounce({"a"}, "x");
  PassRecovery();
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Join("a", 1, kShort, kShort).ok());
  Pass(kShort * 3);
  ASSERT_TRUE(Announce("b", "x", 2).ok());
  ASSERT_TRUE(Return("a")->entered);
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("a", "x", 1, true)));
  EXPECT_EQ(Locate("x")->generation, base::Generation{2});
  EXPECT_EQ(Holders("x"), Ids{"b"});
}

TEST_P(DirectoryConformance, OfTwoThatWerePutBeforeTheFirstAnnouncedStays) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("a", "x", 1, true).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("b", "x", 2, true)));
  EXPECT_EQ(Locate("x")->generation, base::Generation{1});
}

TEST_P(DirectoryConformance, WhatWasPutBeforeMayComeWhileWhatIsNewIsBeingDeleted) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce("b", "x", 2).ok());
  ASSERT_TRUE(Delete("x").ok());
  EXPECT_TRUE(Announce("a", "x", 1, true).ok());
  EXPECT_EQ(Holders("x"), Ids{"a"});
  ASSERT_TRUE(Withdraw("b", "x", 2).ok());
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryOutageConformance, OutOfReachEveryCallEndsByItsDeadline) {
  ASSERT_TRUE(Join("a").ok());
  backend_->CutOff();
  const base::Time asked = loop().Now();
  const base::ObjectVersion x = Version("x", 1);
  const auto join = StartJoin(here(), JoinOf(Node("a")), kShort);
  const auto leave = Start<absl::Status>([&](auto done) { return here().Leave("a", 1, kShort, done); });
  const auto update = StartUpdate(here(), "a", {AnnouncementOf("x")}, kShort);
  const auto locate = StartLocate(here(), "x", {}, kShort);
  const auto wait = StartLocate(here(), "x", kShort / 2, kShort);
  const auto deleted = StartDelete(here(), {x.id, base::kNoGeneration, {}, ""}, kShort);
  const auto verified = Start<Verified>([&](auto done) { return here().Verify("a", {&x, 1}, kShort, done); });
  const auto held = Start<absl::StatusOr<HeldReply>>([&](auto done) { return here().Held("a", "", kShort, done); });
  const auto nodes = Start<NodeList>([&](auto done) { return here().Nodes(kShort, done); });
  EXPECT_TRUE(IsOutage(Await(join).status()));
  EXPECT_TRUE(IsOutage(Await(leave)));
  EXPECT_TRUE(IsOutage(Await(update).status()));
  EXPECT_TRUE(IsOutage(Await(locate).status()));
  EXPECT_TRUE(IsOutage(Await(wait).status()));
  EXPECT_TRUE(IsOutage(Await(deleted).status()));
  EXPECT_TRUE(IsOutage(Await(verified).status()));
  EXPECT_TRUE(IsOutage(Await(held).status()));
  EXPECT_TRUE(IsOutage(Await(nodes).status()));
  EXPECT_LE(loop().Now() - asked, kShort + backend_->tardiness());
}

TEST_P(DirectoryOutageConformance, AnOutageIsOverWhenItIsOver) {
  ASSERT_TRUE(Join("a").ok());
  backend_->CutOff();
  EXPECT_TRUE(IsOutage(Await(StartUpdate(here(), "a", {AnnouncementOf("x")}, kShort)).status()));
  backend_->Heal();
  absl::Status announced;
  for (int i = 0; i < 100; ++i) {
    announced = Await(StartUpdate(here(), "a", {AnnouncementOf("x")})).status();
    if (!IsOutage(announced)) break;
    Pass(kShort);
  }
  EXPECT_TRUE(announced.ok()) << announced;
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryOutageConformance, AWaitOutlivesAShortOutage) {
  ASSERT_TRUE(Join("a").ok());
  const auto waiting = StartLocate(here(), "x", kLong);
  Pass(kShort);
  backend_->CutOff();
  Pass(kShort);
  backend_->Heal();
  EXPECT_FALSE(waiting->answered());
  for (int i = 0; i < 100; ++i) {
    if (Await(StartUpdate(here(), "a", {AnnouncementOf("x")})).ok()) break;
    Pass(kShort);
  }
  EXPECT_TRUE(Await(waiting).ok());
}

TEST_P(DirectoryOutageConformance, AWaitOutlivesARestart) {
  ASSERT_TRUE(Join("a").ok());
  const auto waiting = StartLocate(here(), "x", kLong);
  Pass(kShort);
  backend_->Restart();
  for (int i = 0; i < 100 && !Join("a").ok(); ++i) Pass(kShort);
  ASSERT_TRUE(Announce("a", "x").ok());
  EXPECT_TRUE(Await(waiting).ok());
}

TEST_P(DirectoryConformance, NothingIsHeardOfADirectoryThatWasDropped) {
  ASSERT_TRUE(Join("a").ok());
  dropped_ = true;
  const auto join = StartJoin(here(), JoinOf(Node("b")));
  const auto update = StartUpdate(here(), "a", {AnnouncementOf("x")});
  const auto locate = StartLocate(here(), "y", kShort);
  backend_->DropHere();
  Pass(kShort * 2);
  EXPECT_FALSE(join->answered());
  EXPECT_FALSE(update->answered());
  EXPECT_FALSE(locate->answered());
}

TEST_P(DirectoryConformance, ACallbackMayDropTheDirectory) {
  dropped_ = true;
  bool ran = false;
  const base::Pending first = here().Join(JoinOf(Node("a")), kDeadline, [&](const Joined&) {
    ran = true;
    backend_->DropHere();
  });
  const auto second = StartJoin(here(), JoinOf(Node("b")));
  EXPECT_TRUE(backend_->RunUntil([&] { return ran; }, kPatience));
  Pass(kShort);
  EXPECT_FALSE(second->answered());
}

}  // namespace tokamak::directory
