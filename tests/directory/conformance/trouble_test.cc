// What every directory promises when it was restarted, is out of reach or is dropped.
#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {

using Ids = std::vector<NodeId>;

static bool IsOutage(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

TEST_P(DirectoryConformance, AfterARestartANodeEntersAgain) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  backend_->Restart();
  EXPECT_EQ(*Join("a"), JoinResult::kEntered);
  EXPECT_EQ(Holders("x"), Ids());
  ASSERT_TRUE(Announce("x", "a").ok());
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, AfterARestartNothingIsAnnouncedBeforeJoining) {
  ASSERT_TRUE(Join("a").ok());
  backend_->Restart();
  EXPECT_TRUE(absl::IsNotFound(Announce("x", "a")));
}

TEST_P(DirectoryOutageConformance, OutOfReachEveryCallEndsByItsDeadline) {
  ASSERT_TRUE(Join("a").ok());
  backend_->CutOff();
  const base::Time asked = loop().Now();
  const auto x = base::ObjectId::FromName("x");
  const auto join = StartJoin(here(), Node("a"), kLong, kShort);
  const auto leave = Start<absl::Status>([&](auto done) { here().Leave("a", 1, kShort, done); });
  const auto announce = StartAnnounce(here(), "x", 1, 1, "a", kShort);
  const auto withdraw = Start<absl::Status>([&](auto done) { here().Withdraw(x, "a", kShort, done); });
  const auto locate = StartLocate(here(), "x", {}, kShort);
  const auto wait = StartLocate(here(), "x", kShort / 2, kShort);
  const auto nodes = Start<absl::StatusOr<std::vector<NodeInfo>>>([&](auto done) { here().Nodes(kShort, done); });
  EXPECT_TRUE(IsOutage(Await(join).status()));
  EXPECT_TRUE(IsOutage(Await(leave)));
  EXPECT_TRUE(IsOutage(Await(announce)));
  EXPECT_TRUE(IsOutage(Await(withdraw)));
  EXPECT_TRUE(IsOutage(Await(locate).status()));
  EXPECT_TRUE(IsOutage(Await(wait).status()));
  EXPECT_TRUE(IsOutage(Await(nodes).status()));
  EXPECT_LE(loop().Now() - asked, kShort + backend_->tardiness());
}

TEST_P(DirectoryOutageConformance, AnOutageIsOverWhenItIsOver) {
  ASSERT_TRUE(Join("a").ok());
  backend_->CutOff();
  EXPECT_TRUE(IsOutage(Await(StartAnnounce(here(), "x", 100, 10, "a", kShort))));
  backend_->Heal();
  absl::Status announced;
  for (int i = 0; i < 100; ++i) {
    announced = Announce("x", "a");
    if (!IsOutage(announced)) break;
    Pass(kShort);
  }
  EXPECT_TRUE(announced.ok()) << announced;
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryOutageConformance, AWaitOutlivesAShortOutage) {
  ASSERT_TRUE(Join("a").ok());
  const auto waiting = StartLocate(here(), "x", kLong, kDeadline);
  Pass(kShort);
  backend_->CutOff();
  Pass(kShort);
  backend_->Heal();
  EXPECT_FALSE(waiting->answered());
  for (int i = 0; i < 100 && !Announce("x", "a").ok(); ++i) Pass(kShort);
  EXPECT_TRUE(Await(waiting).ok());
}

TEST_P(DirectoryConformance, NothingIsHeardOfADirectoryThatWasDropped) {
  ASSERT_TRUE(Join("a").ok());
  dropped_ = true;
  const auto join = StartJoin(here(), Node("b"), kLong, kDeadline);
  const auto announce = StartAnnounce(here(), "x", 1, 1, "a", kDeadline);
  const auto locate = StartLocate(here(), "y", kShort, kDeadline);
  backend_->DropHere();
  Pass(kShort * 2);
  EXPECT_FALSE(join->answered());
  EXPECT_FALSE(announce->answered());
  EXPECT_FALSE(locate->answered());
}

TEST_P(DirectoryConformance, ACallbackMayDropTheDirectory) {
  dropped_ = true;
  bool ran = false;
  here().Join(Node("a"), kLong, kDeadline, [&](absl::StatusOr<JoinResult>) {
    ran = true;
    backend_->DropHere();
  });
  const auto second = StartJoin(here(), Node("b"), kLong, kDeadline);
  EXPECT_TRUE(backend_->RunUntil([&] { return ran; }, kPatience));
  Pass(kShort);
  EXPECT_FALSE(second->answered());
}

}  // namespace tokamak::directory
