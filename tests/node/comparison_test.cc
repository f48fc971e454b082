// Differences that membership finds between its store and the directory.
#include "lib/node/cluster/comparison.h"

#include "tests/node/membership_fixture.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;

class ComparisonTest : public MembershipTest {};

TEST_F(ComparisonTest, ObjectsThatTheDirectoryLostAreFoundAndAnnouncedAgain) {
  Start();
  for (int i = 0; i < 1000; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  for (int i = 0; i < 1000; i += 100) Say("a", directory::Update::Kind::kWithdraw, Version(i));
  EXPECT_FALSE(Announced(100));
  scheduler_.RunFor(options_.verify_every + Seconds(1));
  for (int i = 0; i < 1000; i += 100) EXPECT_TRUE(Announced(i)) << i;
  EXPECT_EQ(membership_->counters().repaired, 10u);
}

TEST_F(ComparisonTest, BeyondItsBoundNothingIsForgotten) {
  UseMaxDirty(32);
  Start();
  for (int i = 0; i < 200; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  EXPECT_EQ(membership_->behind(), 0u);
  EXPECT_EQ(directory_.local().objects(), 200u);
  directory_.delay = Milliseconds(1);
  for (int i = 100; i < 200; ++i) ASSERT_TRUE(store_.Delete(Id(i)).ok());
  for (int i = 200; i < 500; ++i) Put(i);
  scheduler_.RunFor(base::Nanoseconds(1));
  EXPECT_EQ(membership_->behind(), 33u);
  EXPECT_GE(membership_->counters().overflows, 1u);
  for (int step = 0; step < 100; ++step) {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(Announced(i)) << i << " in step " << step;
    scheduler_.RunFor(Milliseconds(5));
  }
  scheduler_.RunFor(Seconds(5));
  for (int i = 0; i < 500; ++i) EXPECT_EQ(Announced(i), i < 100 || i >= 200) << i;
  EXPECT_EQ(directory_.local().objects(), 400u);
  EXPECT_EQ(membership_->behind(), 0u);
  EXPECT_EQ(membership_->counters().re_announcements, 1u) << "it is the same life";
  EXPECT_EQ(membership_->counters().repaired, 0u) << "nothing was lost";
}

TEST_F(ComparisonTest, ObjectsThatWereNotNotedAreAnnouncedAsNew) {
  UseMaxDirty(32);
  Start();
  scheduler_.RunFor(Seconds(1));
  OtherJoins();
  Say("b", directory::Update::Kind::kAnnounce, {Id(99), base::Generation{5}});
  for (int i = 0; i < 100; ++i) Put(i);
  scheduler_.RunFor(base::Nanoseconds(1));
  EXPECT_EQ(membership_->counters().overflows, 1u);
  scheduler_.RunFor(Seconds(2));
  ASSERT_EQ(copies_.dropped.size(), 1u);
  EXPECT_EQ(copies_.dropped[0].first.id, Id(99));
  EXPECT_EQ(membership_->behind(), 0u);
}

TEST_F(ComparisonTest, OutagesWithMoreThanIsNotedEndWithTheTruth) {
  UseMaxDirty(32);
  Start();
  for (int i = 0; i < 100; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  for (int round = 0; round < 3; ++round) {
    directory_.out_of_reach = round < 2;
    directory_.answers_get_lost = round == 2;
    for (int i = round * 30; i < 100; ++i) {
      ASSERT_TRUE(store_.Delete(Id(i)).ok());
      scheduler_.RunFor(Milliseconds(1));
      if (i % 3 != 0 || round == 2) continue;
      Put(i);
    }
    for (int i = 0; i < 100; ++i) {
      if (!store_.Contains(Id(i))) Put(i);
    }
    for (int i = 90; i < 100; ++i) ASSERT_TRUE(store_.Delete(Id(i)).ok());
    scheduler_.RunFor(round == 1 ? options_.lease * 10 : Seconds(4));
    directory_.out_of_reach = directory_.answers_get_lost = false;
    scheduler_.RunFor(Seconds(10));
    EXPECT_EQ(membership_->behind(), 0u);
    EXPECT_EQ(directory_.local().objects(), 90u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(Announced(i), i < 90) << i << " in round " << round;
    for (int i = 90; i < 100; ++i) Put(i);
    scheduler_.RunFor(Seconds(1));
  }
}

TEST_F(ComparisonTest, AnEntryOfAMissingObjectIsFoundAndWithdrawn) {
  Start();
  for (int i = 0; i < 1000; ++i) Put(i);
  scheduler_.RunFor(Seconds(1));
  Say("a", directory::Update::Kind::kAnnounce, {Id(2000), base::Generation{2}});
  OtherJoins();
  Say("b", directory::Update::Kind::kAnnounce, {Id(2001), base::Generation{2}});
  scheduler_.RunFor(options_.verify_every + Seconds(1));
  EXPECT_FALSE(Announced(2000));
  EXPECT_TRUE(Announced(2001));
  EXPECT_EQ(directory_.local().objects(), 1001u);
}

}  // namespace
}  // namespace tokamak::node
