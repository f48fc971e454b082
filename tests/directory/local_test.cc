// Promises of the local directory alone: its bounds, the size of its tasks, its times. The promises
// of all directories are in conformance/.
#include "lib/directory/local.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sim/time/sim_loop.h"

namespace tokamak::directory {
namespace {

using base::Microseconds;
using base::Seconds;

constexpr base::Duration kDeadline = Seconds(2);
constexpr base::Duration kLease = Seconds(10), kGrace = Seconds(60);
constexpr base::Duration kTick = base::Duration::Picoseconds(1);

class LocalDirectoryTest : public testing::Test {
 protected:
  explicit LocalDirectoryTest(const LocalOptions& options = {}) : local_(loop_, options) {}

  static base::ObjectId Id(int number) { return base::ObjectId::FromName(std::to_string(number)); }
  static base::ObjectVersion Version(int number, uint64_t generation = 1) {
    return {Id(number), base::Generation{generation}};
  }

  // Runs what answers the call, and nothing that comes later.
  void Answered(const base::Pending&) { scheduler_.RunUntil(scheduler_.Now()); }

  JoinReply Join(const NodeId& id, base::Duration lease = kLease) {
    absl::StatusOr<JoinReply> reply = absl::InternalError("no answer");
    Answered(local_.Join({{id, 1, {"10.0.0.1:7000"}, "", 0}, lease, kGrace, false, false}, kDeadline,
                         [&](absl::StatusOr<JoinReply> joined) { reply = std::move(joined); }));
    EXPECT_TRUE(reply.ok()) << reply.status();
    as_of_[id] = reply->as_of;
    return *reply;
  }
  absl::Status Update(const NodeId& node, Update::Kind kind, const base::ObjectVersion& version) {
    absl::Status status = absl::InternalError("no answer");
    const directory::Update update{kind, version, 1, 1};
    Answered(local_.Update(node, as_of_[node], {&update, 1}, kDeadline,
                           [&](const absl::StatusOr<UpdateStatuses>& all) { status = all->front(); }));
    return status;
  }
  absl::Status Announce(const NodeId& node, int object, uint64_t generation = 1) {
    return Update(node, Update::Kind::kAnnounce, Version(object, generation));
  }
  absl::Status Withdraw(const NodeId& node, int object, uint64_t generation = 1) {
    return Update(node, Update::Kind::kWithdraw, Version(object, generation));
  }
  absl::StatusOr<DeleteReply> Delete(const base::ObjectVersion& version, const std::vector<NodeId>& dropped = {}) {
    absl::StatusOr<DeleteReply> reply = absl::InternalError("no answer");
    Answered(local_.Delete({version.id, version.generation, dropped, ""}, kDeadline,
                           [&](absl::StatusOr<DeleteReply> deleted) { reply = std::move(deleted); }));
    return reply;
  }
  base::Pending Locate(int object, base::Duration wait, absl::Status* status) {
    *status = absl::UnknownError("not yet");
    return local_.Locate({Id(object), wait, wait + kDeadline, ""},
                         [status](const absl::StatusOr<LocatedObject>& info) { *status = info.status(); });
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  LocalDirectory local_;
  std::map<NodeId, std::string> as_of_;  // JoinReply::as_of, the last
};

TEST_F(LocalDirectoryTest, APageOfNodesBeginsAfterANameAndIsBounded) {
  for (const char* const node : {"d", "b", "a", "c"}) Join(node, node[0] == 'b' ? kTick : kLease);
  scheduler_.RunFor(Seconds(1));
  const auto names = [this](const NodeId& after, size_t most) {
    std::string all;
    for (const RosterEntry& entry : local_.RosterNow(after, most)) {
      all += entry.node.id + (entry.liveness == Liveness::kSilent ? "?" : "");
    }
    return all;
  };
  EXPECT_EQ(names("", 2), "ab?");
  EXPECT_EQ(names("a", 2), "b?c");
  EXPECT_EQ(names("bb", 1), "c");
  EXPECT_EQ(names("d", 2), "");
}

// Both answers name as many.
TEST_F(LocalDirectoryTest, AnObjectIsLocatedAsFastHoweverManyHoldIt) {
  constexpr int kHolders = 4000, kLooks = 4096, kMany = 1, kFew = 2;
  for (int node = 0; node < kHolders; ++node) {
    const std::string name = std::to_string(node);
    Join(name);
    ASSERT_TRUE(Announce(name, kMany).ok());
    if (node < static_cast<int>(kMaxHoldersNamed)) {
      ASSERT_TRUE(Announce(name, kFew).ok());
    }
  }
  const auto time_of_looks_at = [this](int object) {
    const std::clock_t before = std::clock();  // of the processor
    for (int look = 0; look < kLooks; ++look) {
      EXPECT_EQ(local_.LocateNow(Id(object), "")->holders.size(), kMaxHoldersNamed);
    }
    return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  };
  const double few = time_of_looks_at(kFew);
  EXPECT_LT(time_of_looks_at(kMany), 5 * few + 0.01);
}

TEST_F(LocalDirectoryTest, AGoneHolderBehindALivingOneHoldsUpNoDeletion) {
  Join("a");
  Join("b");
  ASSERT_TRUE(Announce("a", 1).ok());
  ASSERT_TRUE(Announce("b", 1).ok());
  Answered(local_.Leave("b", 1, kDeadline, [](const absl::Status&) {}));
  EXPECT_EQ(local_.LocateNow(Id(1), "")->holders, std::vector<NodeId>{"a"});
  scheduler_.RunFor(Seconds(1));
  const auto deleted = Delete(Version(1));
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->holders, std::vector<NodeId>{"a"});
  EXPECT_TRUE(Withdraw("a", 1).ok());
  EXPECT_EQ(local_.deletions(), 0u);
}

class SmallDirectoryTest : public LocalDirectoryTest {
 protected:
  SmallDirectoryTest() : LocalDirectoryTest({/*objects=*/3, /*waiting=*/2, Seconds(10)}) {}
};

TEST_F(SmallDirectoryTest, ObjectsBeyondTheBoundAreRefused) {
  Join("a");
  Join("b");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Announce("a", i).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Announce("a", 3)));
  EXPECT_TRUE(Announce("b", 2).ok());
  ASSERT_TRUE(Delete(Version(1)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Announce("a", 3))) << "what is being deleted counts";
  EXPECT_TRUE(Withdraw("a", 0).ok());
  EXPECT_TRUE(Announce("a", 3).ok());
}

TEST_F(SmallDirectoryTest, WaitsBeyondTheBoundAreRefused) {
  Join("a");
  absl::Status first, second, third;
  base::Pending one = Locate(0, Seconds(1), &first);
  const base::Pending two = Locate(1, Seconds(1), &second);
  Answered(Locate(0, Seconds(1), &third));
  EXPECT_TRUE(absl::IsUnknown(first) && absl::IsUnknown(second));
  EXPECT_EQ(local_.waiting(), 2u);
  one.reset();
  EXPECT_EQ(local_.waiting(), 1u);
  const base::Pending again = Locate(0, Seconds(1), &third);
  EXPECT_TRUE(Announce("a", 0).ok());
  EXPECT_TRUE(third.ok()) << third;
  EXPECT_TRUE(absl::IsUnknown(first)) << "it was dropped";
  EXPECT_EQ(local_.waiting(), 1u);
}

TEST_F(LocalDirectoryTest, ThisNodesOwnWaitsLeaveRoomForOthers) {
  std::vector<base::Pending> own(kMaxWaitsOfPeer);
  std::vector<absl::Status> statuses(kMaxWaitsOfPeer);
  for (size_t i = 0; i < own.size(); ++i) own[i] = Locate(0, Seconds(1), &statuses[i]);
  absl::Status refused, told = absl::UnknownError("not yet");
  const base::Pending one_more = Locate(0, Seconds(1), &refused);
  const base::Pending others = local_.Watch(Id(1), [&](const absl::Status& status) { told = status; });
  scheduler_.RunUntil(scheduler_.Now());
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  Join("a");
  EXPECT_TRUE(Announce("a", 1).ok());
  EXPECT_TRUE(told.ok()) << told;
}

TEST_F(LocalDirectoryTest, EndedWaitsLeasesAndDeletionsLeaveNothing) {
  Join("a");
  Join("b");
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Announce("a", i).ok());
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Delete(Version(i)).ok());
  absl::Status status;
  const base::Pending waiting = Locate(200, Seconds(1), &status);
  EXPECT_EQ(local_.objects(), 50u);
  EXPECT_EQ(local_.deletions(), 50u);
  EXPECT_EQ(local_.waiting(), 1u);
  scheduler_.RunFor(kLease + kGrace);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(local_.objects(), 0u);
  EXPECT_EQ(local_.deletions(), 0u);
  EXPECT_EQ(local_.tombstones(), 50u);
  EXPECT_EQ(local_.waiting(), 0u);
  EXPECT_EQ(local_.nodes(), 0u);
  EXPECT_TRUE(scheduler_.idle());
}

TEST_F(LocalDirectoryTest, HandlesMayOutliveTheDirectory) {
  auto directory = std::make_unique<LocalDirectory>(loop_);
  int answers = 0;
  std::vector<base::Pending> handles;
  handles.push_back(directory->Nodes(kDeadline, [&](const auto&) { ++answers; }));
  handles.push_back(directory->Locate({Id(0), Seconds(1), kDeadline, ""}, [&](const auto&) { ++answers; }));
  handles.push_back(directory->Watch(Id(0), [&](const auto&) { ++answers; }));
  directory.reset();
  scheduler_.RunFor(Seconds(2));
  handles.clear();
  EXPECT_EQ(answers, 0);
}

TEST_F(LocalDirectoryTest, LeaseAndGraceEndExactToThePicosecond) {
  Join("a");
  EXPECT_TRUE(Announce("a", 0).ok());
  const base::Time joined = scheduler_.Now();
  scheduler_.RunUntil(joined + kLease - kTick);
  EXPECT_TRUE(local_.Find(Id(0), "").has_value());
  scheduler_.RunUntil(joined + kLease);
  EXPECT_FALSE(local_.Find(Id(0), "").has_value());
  scheduler_.RunUntil(joined + kLease + kGrace - kTick);
  EXPECT_EQ(local_.nodes(), 1u);
  scheduler_.RunUntil(joined + kLease + kGrace);
  EXPECT_EQ(local_.nodes(), 0u);
}

// A node with many objects: the end of its lease is one step, whatever it holds, and what is
// forgotten later is forgotten in small ones; yet from the first moment on nothing of it counts.
TEST_F(LocalDirectoryTest, TasksStaySmallWhenANodeWithManyObjectsIsGone) {
  constexpr int kObjects = 20'000, kDeleted = 5'000;
  Join("a", Seconds(3600));
  Join("b", Seconds(3600));
  for (int i = 0; i < kObjects; ++i) ASSERT_TRUE(Announce("a", i).ok());
  for (int i = 0; i < kDeleted; ++i) ASSERT_TRUE(Delete(Version(i)).ok());
  scheduler_.RunFor(Seconds(1));
  const base::Pending leaving = local_.Leave("a", 1, kDeadline, [](const absl::Status&) {});
  EXPECT_EQ(local_.objects(), size_t{kObjects - kDeleted}) << "the call itself forgets nothing";
  EXPECT_FALSE(local_.Find(Id(kDeleted), "").has_value());
  UpdateStatuses free;
  const std::vector<directory::Update> updates = {{Update::Kind::kAnnounce, Version(kObjects - 1, 2), 1, 1},
                                                  {Update::Kind::kAnnounce, Version(kDeleted - 1, 2), 1, 1}};
  const base::Pending update = local_.Update("b", {}, updates, kDeadline,
                                             [&](const absl::StatusOr<UpdateStatuses>& statuses) { free = *statuses; });
  int steps = 0;
  for (size_t kept = local_.objects() + local_.deletions(); kept > updates.size(); ++steps) {
    const size_t before = kept;
    ASSERT_TRUE(scheduler_.Step());
    kept = local_.objects() + local_.deletions();
    EXPECT_LE(before - kept, ObjectEntries::kForgottenAtOnce + Deletions::kForgottenAtOnce);
  }
  EXPECT_GE(steps, (kObjects - kDeleted) / static_cast<int>(ObjectEntries::kForgottenAtOnce));
  ASSERT_EQ(free.size(), updates.size());
  for (const absl::Status& status : free) EXPECT_TRUE(status.ok()) << "not forgotten yet, but free: " << status;
  EXPECT_EQ(local_.objects(), 2u);
  EXPECT_EQ(local_.deletions(), 0u);
}

TEST_F(LocalDirectoryTest, ANodeThatLeavesWhileAnotherIsForgottenIsForgottenToo) {
  Join("a", Seconds(3600));
  Join("b", Seconds(3600));
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(Announce(i % 2 == 0 ? "a" : "b", i).ok());
  const base::Pending first = local_.Leave("a", 1, kDeadline, [](const absl::Status&) {});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(scheduler_.Step());
  EXPECT_GT(local_.objects(), 2500u);
  const base::Pending second = local_.Leave("b", 1, kDeadline, [](const absl::Status&) {});
  scheduler_.RunFor(Seconds(1));
  EXPECT_EQ(local_.objects(), 0u);
}

TEST_F(LocalDirectoryTest, TasksStaySmallWhenASilentNodeIsBackAndManyWait) {
  constexpr int kObjects = 3 * static_cast<int>(Waits::kAskedAtOnce);
  Join("a", Seconds(1));
  for (int i = 0; i < kObjects; ++i) ASSERT_TRUE(Announce("a", i).ok());
  scheduler_.RunFor(Seconds(2));
  std::vector<base::Pending> waiting(kObjects);
  int told = 0;
  for (int i = 0; i < kObjects; ++i) {
    waiting[static_cast<size_t>(i)] = local_.Watch(Id(i), [&](const absl::Status&) { ++told; });
  }
  const base::Pending join =
      local_.Join({{"a", 1, {"10.0.0.1:7000"}, "", 0}, kLease, kGrace, false, false}, kDeadline, [](const auto&) {});
  EXPECT_EQ(local_.waiting(), size_t{kObjects});
  while (local_.waiting() > 0) {
    const size_t before = local_.waiting();
    ASSERT_TRUE(scheduler_.Step());
    EXPECT_LE(before - local_.waiting(), Waits::kAskedAtOnce);
  }
  scheduler_.RunUntil(scheduler_.Now());
  EXPECT_EQ(told, kObjects);
}

class FewTombstonesTest : public LocalDirectoryTest {
 protected:
  static constexpr int kTombstones = 16;

  FewTombstonesTest() : LocalDirectoryTest(Few()) {}

 private:
  static LocalOptions Few() {
    LocalOptions options;
    options.tombstones = kTombstones;
    return options;
  }
};

TEST_F(FewTombstonesTest, TheLatestDeletionsAreRemembered) {
  Join("a", Seconds(3600));
  scheduler_.RunFor(LocalOptions().recovery);
  const int most = kTombstones;
  for (int i = 0; i < most + 10; ++i) ASSERT_TRUE(Delete(Version(i)).ok());
  EXPECT_EQ(local_.tombstones(), size_t{kTombstones});
  Join("a", Seconds(3600));
  EXPECT_TRUE(Announce("a", 9).ok()) << "the oldest ones are forgotten";
  EXPECT_TRUE(absl::IsAborted(Announce("a", 10)));
  EXPECT_TRUE(absl::IsAborted(Announce("a", most + 9)));
  ASSERT_TRUE(Delete(Version(10)).ok()) << "again: it is remembered once";
  EXPECT_TRUE(absl::IsAborted(Announce("a", 11)));
}

TEST_F(FewTombstonesTest, DeletionsUnderWayAreRememberedWithoutABound) {
  Join("a", Seconds(3600));
  scheduler_.RunFor(LocalOptions().recovery);
  ASSERT_TRUE(Announce("a", -1).ok());
  ASSERT_TRUE(Delete(Version(-1)).ok());
  for (int i = 0; i < kTombstones; ++i) ASSERT_TRUE(Delete(Version(i)).ok());
  EXPECT_TRUE(absl::IsAborted(Announce("a", -1)));
  EXPECT_EQ(Join("a").drops, std::vector<base::ObjectVersion>{Version(-1)});
}

TEST_F(LocalDirectoryTest, AllDropsAreNamedInTurnThoughNoneIsConfirmed) {
  Join("a");
  constexpr int kObjects = static_cast<int>(kMaxDropsTold) * 5 / 2;
  for (int i = 0; i < kObjects; ++i) {
    ASSERT_TRUE(Announce("a", i).ok());
    ASSERT_TRUE(Delete(Version(i)).ok());
  }
  std::vector<base::ObjectVersion> told;
  for (int i = 0; i < 3; ++i) {
    const std::vector<base::ObjectVersion> drops = Join("a").drops;
    EXPECT_EQ(drops.size(), kMaxDropsTold);
    told.insert(told.end(), drops.begin(), drops.end());
  }
  std::sort(told.begin(), told.end());
  told.erase(std::unique(told.begin(), told.end()), told.end());
  EXPECT_EQ(told.size(), size_t{kObjects});
}

}  // namespace
}  // namespace tokamak::directory
