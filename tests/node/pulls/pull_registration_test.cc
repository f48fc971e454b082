#include "lib/node/pulls/pull_registration.h"

#include <vector>

#include "lib/node/engines/threaded_engine.h"
#include "tests/node/membership_fixture.h"
#include "tests/node/pulls/pull_bench.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;

// This node, "a", asks for an object that "b" holds.
class PullRegistrationTest : public MembershipTest, private PullRegistration::Owner {
 protected:
  void SetUp() override {
    Start();
    OtherJoins();
    Say("b", directory::Update::Kind::kAnnounce, version_);
    directory_.said.clear();
  }
  void OnLocated(const absl::StatusOr<directory::LocatedObject>& info) override { answers_.push_back(info.status()); }

  // With the answer.
  void AskAndWait() {
    registration_.Ask(base::Duration(), /*may_bring=*/false);
    scheduler_.RunFor(Milliseconds(1));
  }
  bool DirectoryCountsWithThisNode() { return IsHeldOrComing(version_); }

  const base::ObjectVersion version_{Id(1), base::Generation{7}};
  ThreadedEngine engine_{loop_};
  PullBench bench_{loop_, store_, directory_, *membership_, copies_, {&engine_}};
  PullRegistration registration_{bench_.context, version_.id, *this};
  std::vector<absl::Status> answers_;
};

TEST_F(PullRegistrationTest, AskingEntersThisNodeAsComing) {
  EXPECT_FALSE(DirectoryCountsWithThisNode());
  AskAndWait();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0], absl::OkStatus());
  EXPECT_TRUE(DirectoryCountsWithThisNode());
}

TEST_F(PullRegistrationTest, AnAnswerIsRememberedForLaterPulls) {
  AskAndWait();
  ASSERT_NE(bench_.places.Find(version_.id), nullptr);
  EXPECT_EQ(bench_.places.Find(version_.id)->holders, std::vector<directory::NodeId>{"b"});
}

TEST_F(PullRegistrationTest, AnyContentMayBeComingWhileAQuestionRuns) {
  EXPECT_FALSE(registration_.IsComing({version_.id, base::kNoGeneration}));
  registration_.Ask(base::Duration(), /*may_bring=*/false);
  EXPECT_TRUE(registration_.IsComing({version_.id, base::kNoGeneration}));
  EXPECT_FALSE(registration_.IsComing(version_));
}

TEST_F(PullRegistrationTest, AnEnteredContentIsComing) {
  registration_.Enter(version_);
  EXPECT_TRUE(registration_.IsComing(version_));
  EXPECT_FALSE(registration_.IsComing({version_.id, base::Generation{8}}));
}

TEST_F(PullRegistrationTest, AWithdrawnEntryIsNone) {
  registration_.Enter(version_);
  registration_.OnWithdraw({version_.id, base::Generation{8}});
  EXPECT_TRUE(registration_.entered());
  registration_.OnWithdraw(version_);
  EXPECT_FALSE(registration_.entered());
}

TEST_F(PullRegistrationTest, AWithdrawalOverridesTheAnswerThatIsUnderWay) {
  registration_.Ask(base::Duration(), /*may_bring=*/false);
  registration_.OnWithdraw(version_);
  scheduler_.RunFor(Milliseconds(1));
  EXPECT_TRUE(registration_.WasWithdrawn(version_));
  AskAndWait();
  EXPECT_FALSE(registration_.WasWithdrawn(version_));
}

TEST_F(PullRegistrationTest, AWithdrawalBeforeTheQuestionDoesNotOverrideItsAnswer) {
  registration_.OnWithdraw(version_);
  AskAndWait();
  EXPECT_FALSE(registration_.WasWithdrawn(version_));
}

TEST_F(PullRegistrationTest, AnEntryThatIsTakenBackIsWithdrawn) {
  AskAndWait();
  registration_.Enter(version_);
  registration_.TakeBack();
  EXPECT_FALSE(registration_.entered());
  scheduler_.RunFor(Milliseconds(10));
  EXPECT_FALSE(DirectoryCountsWithThisNode());
}

TEST_F(PullRegistrationTest, OnlyAnEntryIsTakenBack) {
  registration_.TakeBack();
  registration_.Vouch(version_, loop_.Now() + Seconds(60));
  registration_.TakeBack();
  registration_.Enter(version_);
  registration_.Forget();
  registration_.TakeBack();
  scheduler_.RunFor(Milliseconds(10));
  EXPECT_EQ(directory_.Count("withdraw"), 0u);
}

TEST_F(PullRegistrationTest, AQuestionThatEndsWithoutAnAnswerIsTakenBack) {
  directory_.answers_get_lost = true;
  registration_.Ask(base::Duration(), /*may_bring=*/false);
  scheduler_.RunFor(Milliseconds(1));
  directory_.answers_get_lost = false;
  EXPECT_TRUE(DirectoryCountsWithThisNode());
  registration_.End();
  scheduler_.RunFor(Milliseconds(10));
  EXPECT_FALSE(DirectoryCountsWithThisNode());
  EXPECT_TRUE(answers_.empty());
}

TEST_F(PullRegistrationTest, AnEntryOfASilentDirectoryIsTakenBack) {
  directory_.answers_get_lost = true;
  AskAndWait();
  scheduler_.RunFor(bench_.options.directory_deadline);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers_[0])) << answers_[0];
  directory_.answers_get_lost = false;
  scheduler_.RunFor(Seconds(10));
  EXPECT_FALSE(DirectoryCountsWithThisNode());
}

TEST_F(PullRegistrationTest, ASilentDirectoryIsCheckedAtOnce) {
  scheduler_.RunFor(Seconds(1));
  directory_.out_of_reach = true;
  registration_.Ask(base::Duration(), /*may_bring=*/false);
  directory_.said.clear();
  scheduler_.RunFor(bench_.options.directory_deadline + Milliseconds(1));
  EXPECT_EQ(directory_.Count("join"), 1u);
}

TEST_F(PullRegistrationTest, PatienceBeginsWithEachQuestion) {
  AskAndWait();
  const base::Time first = registration_.patient_until();
  AskAndWait();
  EXPECT_EQ(registration_.patient_until(), first + Milliseconds(1));
}

TEST_F(PullRegistrationTest, AVouchedCopyMustBeRegisteredInTime) {
  registration_.Vouch(version_, loop_.Now() + Seconds(60));
  EXPECT_FALSE(registration_.entered());
  registration_.Seal();
  EXPECT_EQ(bench_.context.counters.vouched_for, 1u);
  EXPECT_TRUE(membership_->IsUnannounced(version_));
}

TEST_F(PullRegistrationTest, AnEntryIsWorthMoreThanAHoldersWord) {
  registration_.Enter(version_);
  registration_.Vouch(version_, loop_.Now() + Seconds(60));
  EXPECT_TRUE(registration_.entered());
  registration_.Seal();
  EXPECT_EQ(bench_.context.counters.vouched_for, 0u);
  EXPECT_FALSE(membership_->IsUnannounced(version_));
}

TEST_F(PullRegistrationTest, ASealedCopyIsNotTakenBack) {
  AskAndWait();
  registration_.Enter(version_);
  registration_.Seal();
  registration_.End();
  scheduler_.RunFor(Milliseconds(10));
  EXPECT_EQ(directory_.Count("withdraw"), 0u);
}

TEST_F(PullRegistrationTest, ACopyThatNoDeletionWouldReachIsNotSealed) {
  registration_.Enter(version_);
  registration_.OnWithdraw(version_);
  EXPECT_DEATH(registration_.Seal(), "a deletion would not reach this copy");
}

}  // namespace
}  // namespace tokamak::node
