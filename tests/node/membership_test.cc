#include "lib/node/membership.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "sim/sim_loop.h"
#include "tests/node/trouble_directory.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;

class MembershipTest : public testing::Test {
 protected:
  static constexpr size_t kArena = 1 << 20;
  struct alignas(64) Block {
    uint8_t bytes[64];
  };

  MembershipTest() {
    membership_ = std::make_unique<Membership>(
        loop_, store_, directory_, directory::NodeInfo{"a", 1, {"10.0.0.1:7000"}, "soft", kArena}, options_);
  }

  static base::ObjectId Id(int number) { return base::ObjectId::FromName(std::to_string(number)); }
  void Start() {
    membership_->Start([this](const absl::Status& status) { joined_.push_back(status); });
  }
  void Put(int number, uint64_t size = 100) {
    ASSERT_TRUE(store_.Create(Id(number), size, 0, me_).ok());
    ASSERT_TRUE(store_.Seal(Id(number), me_).ok());
  }
  // Whether the directory says that this node holds it.
  bool Announced(int number) {
    bool held = false;
    directory_.local().Locate(Id(number), {}, Seconds(1), [&](const auto& info) { held = info.ok(); });
    scheduler_.RunFor(base::Nanoseconds(1));
    return held;
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  base::NoTrace trace_;
  std::vector<Block> arena_ = std::vector<Block>(kArena / sizeof(Block));
  store::Store store_{{arena_[0].bytes, kArena}, {}, loop_, trace_};
  const store::Owner me_ = store_.NewOwner();
  TroubleDirectory directory_{loop_};
  MembershipOptions options_;
  std::unique_ptr<Membership> membership_;
  std::vector<absl::Status> joined_;
};

TEST_F(MembershipTest, SaysOnceThatItJoined) {
  Start();
  EXPECT_TRUE(joined_.empty());
  scheduler_.RunFor(Seconds(30));
  ASSERT_EQ(joined_.size(), 1u);
  EXPECT_TRUE(joined_[0].ok());
  EXPECT_TRUE(membership_->joined());
}

TEST_F(MembershipTest, AnnouncesWhatIsSealedAndWithdrawsWhatIsDeleted) {
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

TEST_F(MembershipTest, WithdrawsWhatIsEvicted) {
  Start();
  ASSERT_TRUE(store_.CreateCopy({Id(1), base::Generation{7}}, 100, 0, me_).ok());
  ASSERT_TRUE(store_.Seal(Id(1), me_).ok());
  scheduler_.RunFor(Seconds(1));
  ASSERT_TRUE(Announced(1));
  store_.Evict(1);
  scheduler_.RunFor(Milliseconds(1));
  EXPECT_FALSE(Announced(1));
}

TEST_F(MembershipTest, AnnouncesWhatWasThereBeforeItJoinedButNothingUnsealed) {
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

TEST_F(MembershipTest, TellsEverythingAgainToADirectoryThatForgot) {
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

TEST_F(MembershipTest, AnAnnouncementFindsOutEarlyThatTheDirectoryForgot) {
  Start();
  Put(1);
  scheduler_.RunFor(Seconds(1));
  directory_.Restart();
  Put(2);
  scheduler_.RunFor(Milliseconds(300));
  EXPECT_TRUE(Announced(1));
  EXPECT_TRUE(Announced(2));
}

TEST_F(MembershipTest, WhatHappensInAnOutageIsSaidAfterIt) {
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

TEST_F(MembershipTest, AnOutageLongerThanTheLeaseEndsWithEverythingAnnounced) {
  Start();
  for (int i = 0; i < 100; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  directory_.out_of_reach = true;
  scheduler_.RunFor(options_.lease * 3);
  EXPECT_EQ(directory_.local().nodes(), 0u);
  EXPECT_GT(membership_->counters().failed_renewals, 0u);
  directory_.out_of_reach = false;
  scheduler_.RunFor(Seconds(5));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Announced(i));
}

TEST_F(MembershipTest, WhereTheAnswerThatItEnteredAnewIsLostEverythingIsAnnounced) {
  Start();
  for (int i = 0; i < 100; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  directory_.out_of_reach = true;
  ASSERT_TRUE(scheduler_.RunUntil([&] { return directory_.local().nodes() == 0; }, scheduler_.Now() + Seconds(60)));
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
  ASSERT_EQ(joined_.size(), 1u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(joined_[0]));
  EXPECT_FALSE(membership_->joined());
  directory_.out_of_reach = false;
  scheduler_.RunFor(Seconds(5));
  EXPECT_TRUE(membership_->joined());
  EXPECT_TRUE(Announced(1));
  EXPECT_EQ(joined_.size(), 1u);
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
  EXPECT_EQ(directory_.most_updates, options_.max_updates_in_flight);
  EXPECT_EQ(directory_.most_updates_of_one, 1u);
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(Announced(i));
}

TEST_F(MembershipTest, TheLastWordIsTheTruthWhateverHappenedMeanwhile) {
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

TEST_F(MembershipTest, AnObjectThatTheClusterKnowsWithOtherSizesStaysUnannounced) {
  directory_.local().Join({"b", 1, {"10.0.0.2:7000"}, "soft", 0}, Seconds(1000), Seconds(1), [](const auto&) {});
  directory_.local().Announce(Id(1), 777, 0, "b", Seconds(1), [](const auto&) {});
  Start();
  Put(1, 100);
  scheduler_.RunFor(Seconds(5));
  EXPECT_EQ(membership_->counters().refused, 1u);
  EXPECT_EQ(membership_->behind(), 0u);
  EXPECT_EQ(directory_.Count("announce"), 1u);
}

TEST_F(MembershipTest, ARecheckCorrectsAWrongEntry) {
  Start();
  Put(1);
  scheduler_.RunFor(Seconds(1));
  directory_.local().Withdraw(Id(1), "a", Seconds(1), [](const auto&) {});
  directory_.local().Announce(Id(2), 1, 1, "a", Seconds(1), [](const auto&) {});
  membership_->Recheck(Id(1));
  membership_->Recheck(Id(2));
  scheduler_.RunFor(Milliseconds(1));
  EXPECT_TRUE(Announced(1));
  EXPECT_FALSE(Announced(2));
}

TEST_F(MembershipTest, RechecksAreBounded) {
  directory_.out_of_reach = true;
  Start();
  for (int i = 0; i < 10'000; ++i) membership_->Recheck(Id(i));
  EXPECT_EQ(membership_->behind(), Membership::kMaxRechecks);
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

}  // namespace
}  // namespace tokamak::node
