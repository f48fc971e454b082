#include "lib/node/cluster/membership.h"

#include "tests/node/membership_fixture.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;

TEST_F(MembershipTest, ReportsItsJoinOnce) {
  Start();
  EXPECT_TRUE(joined_.empty());
  scheduler_.RunFor(Seconds(30));
  ASSERT_EQ(joined_.size(), 1u);
  EXPECT_TRUE(joined_[0].ok());
  EXPECT_TRUE(membership_->joined());
}

TEST_F(MembershipTest, AnnouncesSealedObjectsAndWithdrawsDeletedOnes) {
  Start();
  scheduler_.RunFor(Seconds(1));
  Put(1);
  EXPECT_FALSE(Announced(1));
  scheduler_.RunFor(Milliseconds(1));
  EXPECT_TRUE(Announced(1));
  ASSERT_TRUE(store_.Delete(Id(1)).ok());
  scheduler_.RunFor(Milliseconds(1));
  EXPECT_FALSE(Announced(1));
  EXPECT_EQ(membership_->behind(), 0u);
}

TEST_F(MembershipTest, ObjectsMadeInQuickSuccessionAreAnnouncedTogether) {
  Start();
  scheduler_.RunFor(Seconds(1));
  Put(0);
  scheduler_.RunFor(base::Microseconds(20));
  EXPECT_TRUE(Announced(0)) << "one alone does not wait";
  EXPECT_EQ(directory_.update_calls, 1u);
  for (int i = 1; i <= 20; ++i) {
    Put(i);
    scheduler_.RunFor(base::Microseconds(10));
  }
  scheduler_.RunFor(options_.gather_announcements);
  for (int i = 1; i <= 20; ++i) EXPECT_TRUE(Announced(i)) << i;
  EXPECT_EQ(directory_.update_calls, 2u);
}

TEST_F(MembershipTest, AConfirmationWaitsForNothing) {
  Start();
  scheduler_.RunFor(Seconds(1));
  std::vector<base::Pending> handles;
  for (int i = 0; i < 20; ++i) {
    size_t confirmed = 0;
    for (const int number : {2 * i, 2 * i + 1}) {
      Put(number);
      handles.push_back(membership_->Confirm(Version(number), Seconds(2), [&confirmed](const absl::Status& status) {
        EXPECT_EQ(status, absl::OkStatus());
        ++confirmed;
      }));
    }
    scheduler_.RunFor(directory_.delay * 3);
    EXPECT_EQ(confirmed, 2u) << i;
  }
  EXPECT_EQ(directory_.update_calls, 20u) << "two at a time are one call";
}

TEST_F(MembershipTest, WithdrawsEvictedObjects) {
  Start();
  Put(1);
  scheduler_.RunFor(Seconds(1));
  const base::ObjectVersion version = Version(1);
  store_.Evict(1);
  scheduler_.RunFor(Milliseconds(1));
  EXPECT_EQ(copies_.withdrawn, std::vector<base::ObjectVersion>{version});
  EXPECT_FALSE(Announced(1));
}

TEST_F(MembershipTest, AnnouncesOnlySealedObjectsFromBeforeItJoined) {
  Put(1);
  ASSERT_TRUE(store_.Create(Id(2), 100, 0, me_).ok());
  scheduler_.RunFor(Seconds(1));
  EXPECT_TRUE(directory_.said.empty());
  Start();
  scheduler_.RunFor(Seconds(1));
  EXPECT_TRUE(Announced(1));
  EXPECT_FALSE(Announced(2));
}

TEST_F(MembershipTest, RenewsItsLeaseInTime) {
  Start();
  scheduler_.RunFor(options_.lease * 5);
  EXPECT_EQ(directory_.local().nodes(), 1u);
  EXPECT_GE(membership_->counters().renewals, 16u);
  EXPECT_EQ(membership_->counters().re_announcements, 1u);
}

TEST_F(MembershipTest, AnnouncesEverythingAgainToADirectoryThatForgot) {
  Start();
  for (int i = 0; i < 1000; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  directory_.Restart();
  EXPECT_FALSE(Announced(0));
  scheduler_.RunFor(options_.renew + Seconds(1));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(Announced(i));
  EXPECT_EQ(membership_->counters().re_announcements, 2u);
  EXPECT_EQ(membership_->behind(), 0u);
}

// A node's report while it does not know yet that the directory has forgotten it.
TEST_F(MembershipTest, CompletenessIsReportedToTheDirectoryThatKnowsTheObjects) {
  constexpr int kObjects = 2000;
  Start();
  for (int i = 0; i < kObjects; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  directory_.delay = Milliseconds(50);
  directory_.options.recovery = Milliseconds(1);
  directory_.Restart();
  ASSERT_TRUE(scheduler_.RunUntil([&] { return directory_.local().nodes() == 1; }, scheduler_.Now() + Seconds(10)));
  ExpectWaitedForUntilAllIsTold(kObjects);
}

TEST_F(MembershipTest, CompletenessIsNotReportedWhileARenewalIsUnanswered) {
  constexpr int kObjects = 2000;
  Start();
  for (int i = 0; i < kObjects; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  directory_.delay = Milliseconds(50);
  directory_.options.recovery = Milliseconds(1);
  directory_.Restart();
  directory_.answers_get_lost = true;
  ASSERT_TRUE(scheduler_.RunUntil([&] { return membership_->directory_away(); }, scheduler_.Now() + Seconds(10)));
  ASSERT_EQ(directory_.local().nodes(), 1u) << "the answer was lost, not the call";
  directory_.answers_get_lost = false;
  ASSERT_TRUE(scheduler_.RunUntil([&] { return !membership_->directory_away(); }, scheduler_.Now() + Seconds(10)));
  ExpectWaitedForUntilAllIsTold(kObjects);
}

TEST_F(MembershipTest, ObjectsPossiblyDeletedWhileTheNodeWasGoneAreDropped) {
  constexpr int kTombstones = 16;
  directory_.options.tombstones = kTombstones;
  directory_.Restart();
  Start();
  Put(1);
  Put(2);
  scheduler_.RunFor(Seconds(20));  // the directory has learnt all
  directory_.out_of_reach = true;
  scheduler_.RunFor(options_.lease + options_.grace + Seconds(1));
  ASSERT_EQ(directory_.local().nodes(), 0u);
  Put(3);
  OtherJoins();
  for (int i = 0; i <= kTombstones; ++i) {
    Say("b", directory::Update::Kind::kAnnounce, {Id(100 + i), base::Generation{5}});
    ASSERT_TRUE(DeleteAtDirectory(Id(100 + i)).ok());
    Say("b", directory::Update::Kind::kWithdraw, {Id(100 + i), base::Generation{5}});
  }
  directory_.out_of_reach = false;
  scheduler_.RunFor(Seconds(5));
  EXPECT_FALSE(store_.Find(Id(1)).has_value());
  EXPECT_FALSE(store_.Find(Id(2)).has_value());
  ASSERT_EQ(copies_.dropped.size(), 2u);
  for (const auto& [version, why] : copies_.dropped) EXPECT_TRUE(absl::IsAborted(why)) << why;
  EXPECT_EQ(membership_->counters().dropped, 2u);
  EXPECT_TRUE(Announced(3)) << "it was never announced before: nobody can have deleted it";
  EXPECT_FALSE(membership_->fenced());

  directory_.out_of_reach = true;  // gone again, while nothing is deleted
  scheduler_.RunFor(options_.lease + options_.grace + Seconds(1));
  directory_.out_of_reach = false;
  scheduler_.RunFor(Seconds(5));
  EXPECT_TRUE(Announced(3));
}

// As far as the directory can see it was made before deletions that it has forgotten.
TEST_F(MembershipTest, AnOutdatedReportIsRepeatedAtOnce) {
  constexpr int kTombstones = 16;
  directory_.options.tombstones = kTombstones;
  directory_.Restart();
  Start();
  scheduler_.RunFor(Seconds(20));
  OtherJoins();
  for (int i = 0; i <= kTombstones; ++i) {
    Say("b", directory::Update::Kind::kAnnounce, {Id(100 + i), base::Generation{5}});
    ASSERT_TRUE(DeleteAtDirectory(Id(100 + i)).ok());
    Say("b", directory::Update::Kind::kWithdraw, {Id(100 + i), base::Generation{5}});
  }
  const uint64_t renewals = membership_->counters().renewals;
  Put(1);
  scheduler_.RunFor(base::Milliseconds(1));
  EXPECT_FALSE(Announced(1));
  scheduler_.RunFor(options_.first_back_off + base::Milliseconds(1));
  EXPECT_TRUE(Announced(1));
  EXPECT_EQ(membership_->counters().renewals, renewals + 1);
}

TEST_F(MembershipTest, AnAnnouncementNoticesEarlyThatTheDirectoryForgot) {
  Start();
  Put(1);
  scheduler_.RunFor(Seconds(1));
  directory_.Restart();
  Put(2);
  scheduler_.RunFor(Milliseconds(300));
  EXPECT_TRUE(Announced(1));
  EXPECT_TRUE(Announced(2));
}

TEST_F(MembershipTest, ChangesDuringAnOutageAreReportedAfterIt) {
  Start();
  Put(1);
  scheduler_.RunFor(Seconds(1));
  directory_.out_of_reach = true;
  Put(2);
  ASSERT_TRUE(store_.Delete(Id(1)).ok());
  scheduler_.RunFor(Seconds(5));
  EXPECT_GT(membership_->behind(), 0u);
  directory_.out_of_reach = false;
  scheduler_.RunFor(Seconds(5));
  EXPECT_FALSE(Announced(1));
  EXPECT_TRUE(Announced(2));
  EXPECT_EQ(membership_->behind(), 0u);
}

TEST_F(MembershipTest, AnOutageLongerThanLeaseAndGraceEndsWithEverythingAnnounced) {
  Start();
  for (int i = 0; i < 100; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  directory_.out_of_reach = true;
  scheduler_.RunFor(options_.lease + options_.grace + Seconds(1));
  EXPECT_EQ(directory_.local().nodes(), 0u);
  EXPECT_GT(membership_->counters().failed_renewals, 0u);
  directory_.out_of_reach = false;
  scheduler_.RunFor(Seconds(5));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Announced(i));
}

TEST_F(MembershipTest, ALostAnswerToANewEntryHasEverythingAnnounced) {
  Start();
  for (int i = 0; i < 100; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  directory_.out_of_reach = true;
  ASSERT_TRUE(scheduler_.RunUntil([&] { return directory_.local().nodes() == 0; }, scheduler_.Now() + Seconds(120)));
  directory_.out_of_reach = false;
  directory_.answers_get_lost = true;
  ASSERT_TRUE(scheduler_.RunUntil([&] { return directory_.local().nodes() == 1; }, scheduler_.Now() + Seconds(60)));
  directory_.answers_get_lost = false;
  scheduler_.RunFor(Seconds(5));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Announced(i)) << i;
  EXPECT_EQ(membership_->behind(), 0u);
}

TEST_F(MembershipTest, ADirectoryThatIsAwayAtFirstIsJoinedLater) {
  directory_.out_of_reach = true;
  Put(1);
  Start();
  scheduler_.RunFor(Seconds(5));
  ASSERT_GE(joined_.size(), 2u) << "each answer is told";
  EXPECT_TRUE(absl::IsDeadlineExceeded(joined_.back()));
  EXPECT_FALSE(membership_->joined());
  directory_.out_of_reach = false;
  scheduler_.RunFor(Seconds(5));
  EXPECT_TRUE(membership_->joined());
  EXPECT_TRUE(Announced(1));
  EXPECT_EQ(joined_.back(), absl::OkStatus());
  EXPECT_EQ(std::count(joined_.begin(), joined_.end(), absl::OkStatus()), 1) << "the last that is told";
}

TEST_F(MembershipTest, UpdatesAreBoundedAndOneForEachObject) {
  directory_.delay = Milliseconds(5);
  Start();
  for (int i = 0; i < 500; ++i) Put(i);
  scheduler_.RunFor(Milliseconds(12));
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(store_.Delete(Id(i)).ok());
    scheduler_.RunFor(Milliseconds(2));
    for (int i = 0; i < 100; ++i) Put(i);
    scheduler_.RunFor(Milliseconds(2));
  }
  scheduler_.RunFor(Seconds(2));
  EXPECT_LE(directory_.most_updates, directory::kMaxUpdates * Membership::kBatchesInFlight);
  EXPECT_GE(directory_.most_updates, directory::kMaxUpdates);
  EXPECT_EQ(directory_.most_updates_of_one, 1u);
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(Announced(i));
}

TEST_F(MembershipTest, TheLastUpdateIsTheTruthWhateverHappenedMeanwhile) {
  base::Random random(1);
  directory_.delay = Milliseconds(1);
  Start();
  std::vector<bool> here(20);
  for (int step = 0; step < 3000; ++step) {
    const int number = static_cast<int>(random.Below(here.size()));
    const size_t index = static_cast<size_t>(number);
    if (here[index]) {
      ASSERT_TRUE(store_.Delete(Id(number)).ok());
    } else {
      Put(number);
    }
    here[index] = !here[index];
    directory_.out_of_reach = random.Chance(0.02);
    directory_.answers_get_lost = random.Chance(0.02);
    if (random.Chance(0.002)) directory_.Restart();
    scheduler_.RunFor(base::Microseconds(static_cast<int64_t>(random.Below(3000))));
  }
  directory_.out_of_reach = false;
  directory_.answers_get_lost = false;
  scheduler_.RunFor(Seconds(20));
  EXPECT_EQ(membership_->behind(), 0u);
  for (size_t i = 0; i < here.size(); ++i) EXPECT_EQ(Announced(static_cast<int>(i)), here[i]) << i;
}

// A2: whoever comes second loses, whatever the sizes.
TEST_F(MembershipTest, AContentWhoseIdIsTakenIsDropped) {
  OtherJoins();
  Say("b", directory::Update::Kind::kAnnounce, {Id(1), base::Generation{5}});
  Start();
  Put(1);
  const base::ObjectVersion loser = Version(1);
  scheduler_.RunFor(Seconds(5));
  ASSERT_EQ(copies_.dropped.size(), 1u);
  EXPECT_EQ(copies_.dropped[0].first, loser);
  EXPECT_TRUE(absl::IsAlreadyExists(copies_.dropped[0].second));
  EXPECT_FALSE(store_.Contains(Id(1)));
  EXPECT_EQ(membership_->counters().refused, 1u);
  EXPECT_EQ(membership_->behind(), 0u);
  EXPECT_EQ(directory_.Count("announce"), 1u);
}

// A6: deleted and put again before the first withdrawal has gone out.
TEST_F(MembershipTest, AContentThatFollowsAnotherBeforeItsWithdrawalIsAnnounced) {
  Start();
  Put(1, 100);
  scheduler_.RunFor(Seconds(1));
  directory_.out_of_reach = true;
  ASSERT_TRUE(store_.Delete(Id(1)).ok());
  Put(1, 200);
  scheduler_.RunFor(Seconds(5));
  directory_.out_of_reach = false;
  scheduler_.RunFor(Seconds(5));
  EXPECT_TRUE(Announced(1));
  EXPECT_TRUE(store_.Contains(Id(1)));
  EXPECT_EQ(membership_->behind(), 0u);
}

TEST_F(MembershipTest, ObjectsDeletedWhileTheNodeWasAwayAreDroppedOnItsReturn) {
  Start();
  Put(1);
  const base::ObjectVersion version = Version(1);
  scheduler_.RunFor(Seconds(1));
  directory_.out_of_reach = true;
  scheduler_.RunFor(options_.lease * 2);
  directory::DeleteRequest request;
  request.id = Id(1);
  calls_.push_back(directory_.local().Delete(request, Seconds(1), [](const auto& reply) {
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(reply->silent, std::vector<directory::NodeId>{"a"});
  }));
  scheduler_.RunFor(Seconds(1));
  directory_.out_of_reach = false;
  scheduler_.RunFor(Seconds(1));
  ASSERT_FALSE(copies_.dropped.empty());
  EXPECT_EQ(copies_.dropped[0].first, version);
  EXPECT_FALSE(store_.Contains(Id(1)));
  scheduler_.RunFor(Seconds(5));
  EXPECT_EQ(directory_.local().deletions(), 0u) << "it was not confirmed";
}

TEST_F(MembershipTest, ARecheckCorrectsAWrongEntry) {
  Start();
  Put(1);
  scheduler_.RunFor(Seconds(1));
  const base::ObjectVersion here = Version(1), gone{Id(2), base::Generation{2}};
  Say("a", directory::Update::Kind::kWithdraw, here);
  Say("a", directory::Update::Kind::kAnnounce, gone);
  membership_->Recheck(here);
  membership_->Recheck(gone);
  scheduler_.RunFor(Milliseconds(1));
  EXPECT_TRUE(Announced(1));
  EXPECT_FALSE(Announced(2));
}

TEST_F(MembershipTest, AnObjectThatAPullBringsIsNotWithdrawn) {
  Start();
  scheduler_.RunFor(Seconds(1));
  const base::ObjectVersion coming{Id(1), base::Generation{9}};
  copies_.coming = coming;
  membership_->Recheck(coming);
  scheduler_.RunFor(Seconds(1));
  EXPECT_EQ(directory_.Count("withdraw"), 0u);
}

// A17: the directory has lost entries. A9: objects that became dirty first are reported first,
// whatever their ids.
TEST_F(MembershipTest, UpdatesGoOutInTheOrderInWhichObjectsBecameDirty) {
  directory_.delay = Milliseconds(5);
  Start();
  scheduler_.RunFor(Milliseconds(20));
  std::vector<base::ObjectId> order;
  for (int i = 0; i < 500; ++i) {
    Put(i);
    order.push_back(Id(i));
  }
  scheduler_.RunFor(Seconds(1));
  EXPECT_EQ(directory_.announced, order);
}

// A10: an outage while objects come and go.
TEST_F(MembershipTest, ObjectsThatCameAndWentInAnOutageAreNotRemembered) {
  Start();
  scheduler_.RunFor(Seconds(1));
  directory_.out_of_reach = true;
  for (int i = 0; i < 20'000; ++i) {
    Put(i);
    if (i % 100 == 0) scheduler_.RunFor(Milliseconds(1));
    ASSERT_TRUE(store_.Delete(Id(i)).ok());
  }
  scheduler_.RunFor(Seconds(3));
  EXPECT_LE(membership_->behind(), directory::kMaxUpdates * Membership::kBatchesInFlight);
}

// More comes and goes than is noted: objects known to the directory stay known throughout. A
// content that was never accepted stays so, noted or not: another content has the better right.
TEST_F(MembershipTest, AConfirmationDoesNotWaitForABurst) {
  UseMaxDirty(300);
  Start();
  scheduler_.RunFor(Seconds(1));
  OtherJoins();
  Say("b", directory::Update::Kind::kAnnounce, {Id(1001), base::Generation{5}});
  directory_.delay = Milliseconds(5);
  for (int i = 0; i < 1000; ++i) Put(i);
  std::vector<absl::Status> answers(2, absl::InternalError("no answer"));
  std::vector<base::Pending> handles;
  for (int i = 0; i < 2; ++i) {
    Put(1000 + i);
    handles.push_back(membership_->Confirm(Version(1000 + i), Seconds(2),
                                           [&answers, i](const absl::Status& status) { answers[i] = status; }));
  }
  scheduler_.RunFor(Milliseconds(12));
  EXPECT_EQ(answers[0], absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(answers[1])) << answers[1];
  scheduler_.RunFor(Seconds(2));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(Announced(i)) << i;
}

// Nobody asked for an object whose entry is wrong, and it had kept its id taken for good.
// The directory may have taken it in.
TEST_F(MembershipTest, AnUnansweredAnnouncementOfAGoneObjectIsWithdrawn) {
  Start();
  scheduler_.RunFor(Seconds(1));
  directory_.answers_get_lost = true;
  Put(1);
  const base::ObjectVersion version = Version(1);
  absl::Status answer = absl::InternalError("no answer");
  const base::Pending handle =
      membership_->Confirm(version, options_.directory_deadline + options_.retry / 2, [&](const absl::Status& status) {
        answer = status;  // and the node drops it
        store_.DeleteVersion(version).IgnoreError();
      });
  scheduler_.RunFor(options_.directory_deadline + options_.retry * 3 / 4);
  EXPECT_TRUE(absl::IsUnavailable(answer)) << answer;
  EXPECT_TRUE(Announced(1)) << "what this is about";
  directory_.answers_get_lost = false;
  scheduler_.RunFor(Seconds(5));
  EXPECT_FALSE(Announced(1));
  EXPECT_EQ(directory_.local().objects(), 0u);
}

// It may have been taken in by a directory that is gone, and others may have copies.
TEST_F(MembershipTest, AnUnansweredAnnouncementIsNotNewToTheNextDirectory) {
  Start();
  scheduler_.RunFor(Seconds(1));
  directory_.answers_get_lost = true;
  Put(1);
  scheduler_.RunFor(options_.directory_deadline * 2);
  ASSERT_TRUE(Announced(1)) << "what this is about";
  directory_.Restart();
  directory_.answers_get_lost = false;
  EXPECT_TRUE(membership_->MayBeElsewhere(Version(1)));
  ASSERT_TRUE(scheduler_.RunUntil([&] { return Announced(1); }, scheduler_.Now() + Seconds(5)));
  Put(2);
  ASSERT_TRUE(scheduler_.RunUntil([&] { return Announced(2); }, scheduler_.Now() + Seconds(5)));
  EXPECT_EQ(DeleteAtDirectory(Id(2)), absl::OkStatus()) << "nobody else has it";
  EXPECT_TRUE(absl::IsUnavailable(DeleteAtDirectory(Id(1))));
  scheduler_.RunFor(Seconds(20));
  EXPECT_EQ(DeleteAtDirectory(Id(1)), absl::OkStatus()) << "everybody has had the time to say so";
}

// An unanswered withdrawal is repeated.
TEST_F(MembershipTest, AWithdrawalIsRepeatedUntilItIsAnswered) {
  Start();
  scheduler_.RunFor(Seconds(1));
  directory_.answers_get_lost = true;
  Put(1);
  scheduler_.RunFor(options_.directory_deadline + options_.retry / 2);
  directory_.answers_get_lost = false;
  directory_.out_of_reach = true;
  ASSERT_TRUE(store_.Delete(Id(1)).ok());
  scheduler_.RunFor(options_.directory_deadline * 4);
  EXPECT_TRUE(Announced(1));
  directory_.out_of_reach = false;
  scheduler_.RunFor(Seconds(3));
  EXPECT_FALSE(Announced(1));
  EXPECT_EQ(membership_->behind(), 0u);
}

// Deleted while its confirmation was under way: nobody knows whether the id was free.
TEST_F(MembershipTest, AWithdrawalConfirmsNothing) {
  Start();
  scheduler_.RunFor(Seconds(1));
  OtherJoins();
  Say("b", directory::Update::Kind::kAnnounce, {Id(1), base::Generation{5}});
  directory_.answers_get_lost = true;
  Put(1);
  absl::Status answer = absl::InternalError("no answer");
  const base::Pending handle =
      membership_->Confirm(Version(1), Seconds(10), [&](const absl::Status& status) { answer = status; });
  scheduler_.RunFor(Milliseconds(1));
  ASSERT_TRUE(store_.Delete(Id(1)).ok());
  scheduler_.RunFor(options_.directory_deadline);
  directory_.answers_get_lost = false;
  scheduler_.RunFor(Seconds(3));
  EXPECT_TRUE(absl::IsNotFound(answer)) << answer;
}

TEST_F(MembershipTest, ANodeBeyondLeaseAndGraceIsFencedUntilAllIsAnnouncedAgain) {
  Start();
  for (int i = 0; i < 300; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  directory_.out_of_reach = true;
  scheduler_.RunFor(options_.lease + options_.grace / 2);
  EXPECT_FALSE(membership_->fenced());
  EXPECT_TRUE(membership_->directory_away());
  scheduler_.RunFor(options_.grace / 2);
  EXPECT_TRUE(membership_->fenced());
  directory_.delay = Milliseconds(50);
  directory_.out_of_reach = false;
  ASSERT_TRUE(scheduler_.RunUntil([&] { return membership_->joined() && !membership_->directory_away(); },
                                  scheduler_.Now() + Seconds(10)));
  EXPECT_TRUE(membership_->fenced());
  scheduler_.RunFor(Seconds(2));
  EXPECT_FALSE(membership_->fenced());
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(Announced(i));
}

TEST_F(MembershipTest, AConfirmationReportsAFullDirectory) {
  directory_.RestartWithoutRoom();
  Start();
  scheduler_.RunFor(Seconds(1));
  Put(1);
  absl::Status answer = absl::InternalError("no answer");
  const base::Pending handle =
      membership_->Confirm(Version(1), Seconds(2), [&](const absl::Status& status) { answer = status; });
  scheduler_.RunFor(base::Milliseconds(100));
  EXPECT_TRUE(absl::IsResourceExhausted(answer)) << answer;
}

TEST_F(MembershipTest, ConfirmsThatAnIdWasFree) {
  Start();
  scheduler_.RunFor(Seconds(1));
  OtherJoins();
  Say("b", directory::Update::Kind::kAnnounce, {Id(2), base::Generation{5}});
  std::vector<absl::Status> answers(4, absl::InternalError("no answer"));
  std::vector<base::Pending> handles;
  const auto confirm = [&](int number) {
    Put(number);
    handles.push_back(membership_->Confirm(Version(number), Seconds(2), [&answers, number](const absl::Status& status) {
      answers[static_cast<size_t>(number)] = status;
    }));
    EXPECT_TRUE(absl::IsInternal(answers[static_cast<size_t>(number)])) << "answered inside the call";
  };
  confirm(1);
  confirm(2);
  scheduler_.RunFor(Seconds(1));
  EXPECT_EQ(answers[1], absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(answers[2])) << answers[2];
  EXPECT_EQ(directory_.Count("announce"), 2u);
  directory_.out_of_reach = true;
  confirm(3);
  scheduler_.RunFor(Seconds(3));
  EXPECT_TRUE(absl::IsUnavailable(answers[3])) << answers[3];
}

TEST_F(MembershipTest, LeavingEndsTheLeaseAndAllAnnouncements) {
  Start();
  Put(1);
  scheduler_.RunFor(Seconds(1));
  absl::Status left = absl::InternalError("no answer");
  membership_->Leave([&](const absl::Status& status) { left = status; });
  Put(2);
  scheduler_.RunFor(Seconds(30));
  EXPECT_TRUE(left.ok());
  EXPECT_EQ(directory_.local().nodes(), 0u);
  EXPECT_EQ(directory_.said.back(), "leave");
  EXPECT_TRUE(scheduler_.idle());
}

TEST_F(MembershipTest, MayBeDroppedAtAnyTime) {
  Start();
  for (int i = 0; i < 200; ++i) Put(i);
  scheduler_.RunFor(base::Microseconds(25));
  membership_.reset();
  scheduler_.RunFor(Seconds(5));
  EXPECT_EQ(joined_.size(), 1u);
}

// A pull has ended before it heard the answer to its Locate. Until the copy is announced, behind
// much else, the directory knows of it by that Locate alone.
TEST_F(MembershipTest, AComingEntryIsNotTakenBackBeforeTheCopyIsAnnounced) {
  options_.words_at_once = 1;
  Make();
  Start();
  scheduler_.RunFor(Seconds(1));
  OtherJoins();
  const base::ObjectVersion copy{Id(0), base::Generation{7}};
  Say("b", directory::Update::Kind::kAnnounce, copy);
  directory_.delay = Milliseconds(1);
  for (int i = 1; i <= 20; ++i) Put(i);
  directory::LocateRequest request;
  request.id = Id(0);
  request.puller = "a";
  request.deadline = Seconds(1);
  calls_.push_back(directory_.local().Locate(request, [](const auto& info) { EXPECT_TRUE(info.ok()); }));
  ASSERT_TRUE(store_.CreateCopy(copy, 100, 0, me_).ok());
  ASSERT_TRUE(store_.Seal(Id(0), me_).ok());
  membership_->Recheck({Id(0), base::kNoGeneration});
  do {
    scheduler_.RunFor(base::Microseconds(100));
    ASSERT_TRUE(IsHeldOrComing(copy)) << membership_->behind();
  } while (membership_->behind() > 0);
  EXPECT_EQ(directory_.Count("announce"), 21u);
}

}  // namespace
}  // namespace tokamak::node
