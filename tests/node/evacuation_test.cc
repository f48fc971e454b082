// A node that leaves hands what was put on it over to others.
#include "lib/node/deletes/evacuation.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Seconds;

class EvacuationTest : public NodeTest {
 protected:
  struct Run {
    std::optional<EvacuationReport> report;
    base::Time began;
    base::Duration took;
    base::Pending call;
  };
  std::unique_ptr<Run> StartEvacuation(size_t i, base::Duration limit = Seconds(60)) {
    auto run = std::make_unique<Run>();
    run->began = cluster_->time.Now();
    run->call = at(i).node().Evacuate(
        limit, [this](const EvacuationReport&) { ++reports_; },
        [this, run = run.get()](const EvacuationReport& end) {
          run->report = end;
          run->took = cluster_->time.Now() - run->began;
        });
    EXPECT_FALSE(run->report.has_value()) << "answered inside the call";
    return run;
  }
  EvacuationReport End(Run& run, base::Duration limit = Seconds(60)) {
    EXPECT_TRUE(cluster_->RunUntil([&] { return run.report.has_value(); }, limit + Seconds(1)));
    return run.report.value_or(EvacuationReport());
  }
  EvacuationReport Evacuate(size_t i, base::Duration limit = Seconds(60)) {
    const auto run = StartEvacuation(i, limit);
    return End(*run, limit);
  }
  std::vector<std::string> PutMany(size_t i, int count, uint64_t size) {
    std::vector<std::string> names;
    for (int k = 0; k < count; ++k) {
      names.push_back(absl::StrCat("x", k));
      EXPECT_EQ(at(i).Put(names.back(), size), absl::OkStatus());
    }
    cluster_->Settle();
    return names;
  }
  // In the order in which they are handed over.
  static std::vector<std::string> ById(std::vector<std::string> names) {
    std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return Id(a) < Id(b); });
    return names;
  }
  // Whatever a program of node 1 puts until it is refused for another reason than want of room.
  absl::Status PutUntilRefused(std::vector<std::string>& names, base::Duration pause, const Run& run) {
    absl::Status put;
    while ((put.ok() || absl::IsResourceExhausted(put)) && !run.report.has_value()) {
      const std::string name = absl::StrCat("y", names.size());
      put = at(1).Put(name, 1000);
      if (put.ok()) names.push_back(name);
      cluster_->RunFor(pause);
    }
    return put;
  }
  void Leave(size_t i) {
    bool left = false;
    at(i).node().Leave([&](const absl::Status&) { left = true; });
    EXPECT_TRUE(cluster_->RunUntil([&] { return left; }));
    cluster_->RunFor(Seconds(1));
  }

  int reports_ = 0;
};

TEST_F(EvacuationTest, ObjectsThatWerePutAreKeptElsewhere) {
  Build(3);
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) {
    names.push_back("x" + std::to_string(i));
    ASSERT_EQ(at(1).Put(names.back(), static_cast<uint64_t>(i) * 5000, 3), absl::OkStatus());
  }
  cluster_->Settle();
  const EvacuationReport report = Evacuate(1);
  EXPECT_EQ(report.objects, 40u) << report.trouble;
  EXPECT_EQ(report.left_objects, 0u);
  Leave(1);
  for (const std::string& name : names) EXPECT_NE(Read(2, name), base::kNoGeneration) << name;
  // Kept, not only copied: nothing of it may be evicted.
  EXPECT_EQ(at(0).store().statistics().kept_bytes + at(2).store().statistics().kept_bytes, report.bytes);
}

// Before and behind what is being handed over, and sealed before or after that was listed.
TEST_F(EvacuationTest, AnObjectPutMeanwhileIsHandedOverOnce) {
  Build(3);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(at(1).Put(absl::StrCat("x", i), 1000), absl::OkStatus());
  cluster_->Settle();
  std::optional<EvacuationReport> report;
  const base::Pending call = at(1).node().Evacuate(
      Seconds(60), [](const EvacuationReport&) {}, [&](const EvacuationReport& end) { report = end; });
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(at(1).Put(absl::StrCat("y", i), 1000), absl::OkStatus());
    cluster_->RunFor(base::Microseconds(5));
  }
  ASSERT_FALSE(report.has_value());
  ASSERT_TRUE(cluster_->RunUntil([&] { return report.has_value(); }, Seconds(61)));
  EXPECT_EQ(report->objects, 300u) << report->trouble;
  EXPECT_EQ(report->left_objects, 0u);
  EXPECT_EQ(at(0).store().statistics().kept_bytes + at(2).store().statistics().kept_bytes, report->bytes);
}

TEST_F(EvacuationTest, ACopyThatIsThereAlreadyIsKeptFromThenOn) {
  Build(2);
  Put(1, "x", 1000);
  ASSERT_EQ(cluster_->Get(at(0), "x"), absl::OkStatus());
  EXPECT_EQ(Evacuate(1).objects, 1u);
  at(0).store().Evict(1 << 30);
  EXPECT_TRUE(at(0).Has("x"));
  EXPECT_EQ(at(0).store().CheckConsistency(), absl::OkStatus());
}

// Or a deletion would not find it, and it is never given up.
TEST_F(EvacuationTest, KeptObjectsAreKnownToTheDirectory) {
  Build(3);
  ASSERT_EQ(at(1).Put("small", 100), absl::OkStatus());
  ASSERT_EQ(at(1).Put("large", 1'000'000), absl::OkStatus());
  cluster_->Settle();
  EXPECT_EQ(Evacuate(1).objects, 2u);
  for (const std::string name : {"small", "large"}) {
    const size_t keeper = at(0).Has(name) ? 0 : 2;
    EXPECT_FALSE(at(keeper).node().membership().IsUnannounced({Id(name), GenerationOn(keeper, name)})) << name;
  }
}

TEST_F(EvacuationTest, ANodeWithoutRoomIsFollowedByTheNextAndLeftoversAreReported) {
  Build(2);
  sim::HostOptions small;
  small.memory = 64 << 10;
  cluster_->Add(small);
  cluster_->Settle();
  Put(1, "fits", 1'000'000);
  Put(1, "too-large", 7'500'000 - 1'000'000);
  Put(0, "there", 4'000'000);
  const EvacuationReport report = Evacuate(1);
  EXPECT_EQ(report.objects, 1u);
  EXPECT_EQ(report.left_objects, 1u);
  EXPECT_EQ(report.left_bytes, 6'500'000u);
  EXPECT_TRUE(absl::IsResourceExhausted(report.trouble)) << report.trouble;
}

TEST_F(EvacuationTest, ANodeThatIsAloneReportsIt) {
  Build(1);
  Put(0, "x", 1000);
  const EvacuationReport report = Evacuate(0);
  EXPECT_EQ(report.left_objects, 1u);
  EXPECT_TRUE(absl::IsNotFound(report.trouble)) << report.trouble;
}

// A directory that was restarted names no other node for a moment.
TEST_F(EvacuationTest, NodesThatTheDirectoryForgetsForAMomentAreAwaited) {
  Build(2);
  ASSERT_EQ(at(1).Put("there", 8'000'000), absl::OkStatus());
  Put(0, "x", 1'000'000);
  const auto run = StartEvacuation(0);
  cluster_->RunFor(Seconds(1));
  bool left = false;
  const base::Pending call = at(0).served()->Leave(at(1).name, at(1).node().membership().self().incarnation, Seconds(1),
                                                   [&](const absl::Status&) { left = true; });
  ASSERT_TRUE(cluster_->RunUntil([&] { return left; }));
  ASSERT_EQ(at(1).store().Delete(Id("there")), absl::OkStatus());
  EXPECT_EQ(End(*run).objects, 1u) << run->report->trouble;
}

TEST_F(EvacuationTest, EndsAtItsLimitWithProgressOnTheWay) {
  sim::ClusterOptions options;
  options.link.picoseconds_per_byte = 1'000'000;  // 8 Mb/s
  Build(2, {}, options);
  Put(1, "x", 7'000'000);
  const EvacuationReport report = Evacuate(1, Seconds(5));
  EXPECT_EQ(report.objects, 0u);
  EXPECT_EQ(report.left_objects, 1u);
  EXPECT_GE(reports_, 4);
}

TEST_F(EvacuationTest, MayBeDroppedAtAnyTime) {
  Build(2);
  Put(1, "x", 4'000'000);
  base::Pending call = at(1).node().Evacuate(
      Seconds(60), [](const EvacuationReport&) {}, [](const EvacuationReport&) { FAIL(); });
  ASSERT_TRUE(Serves(1));
  call.reset();
  cluster_->RunFor(Seconds(5));
}

// ---- what jams it

TEST_F(EvacuationTest, AnObjectDeletedMeanwhileHoldsUpNothing) {
  Build(3);
  const std::vector<std::string> names = ById(PutMany(1, 300, 10'000));
  const auto run = StartEvacuation(1, Seconds(20));
  std::vector<std::string> kept;
  std::vector<base::Pending> deletions;
  int deleted = 0;
  for (size_t k = 0; k < names.size(); ++k) {
    if (k % 3 != 0) {
      kept.push_back(names[k]);
      continue;
    }
    deletions.push_back(
        at(0).node().Delete(Id(names[k]), [&](const absl::StatusOr<uint32_t>& copies) { deleted += copies.ok(); }));
  }
  const EvacuationReport report = End(*run, Seconds(20));
  EXPECT_LT(run->took, Seconds(1));
  EXPECT_EQ(report.left_objects, 0u) << report.trouble;
  EXPECT_EQ(deleted, 100);
  Leave(1);
  for (const std::string& name : kept) EXPECT_NE(Read(2, name), base::kNoGeneration) << name;
}

// The other end does not go on with it either.
TEST_F(EvacuationTest, AnObjectDeletedOnItsWayIsWithdrawnAtOnce) {
  sim::ClusterOptions options;
  options.link.picoseconds_per_byte = 1'000'000;  // 8 Mb/s
  Build(2, {}, options);
  Put(1, "x", 7'000'000);
  const auto run = StartEvacuation(1);
  ASSERT_TRUE(Serves(1));
  ASSERT_EQ(at(1).store().Delete(Id("x")), absl::OkStatus());
  const EvacuationReport report = End(*run);
  EXPECT_EQ(report.objects + report.left_objects, 0u);
  EXPECT_LT(run->took, Seconds(1));
  EXPECT_TRUE(cluster_->RunUntil([&] { return at(0).node().pulls().running() == 0; }, Seconds(5)));
}

TEST_F(EvacuationTest, ANodeWithRoomButNoRunOfItIsFollowedByTheNext) {
  Build(3);
  for (int k = 0; k < 120; ++k) ASSERT_EQ(at(0).Put(absl::StrCat("hole", k), 64 << 10), absl::OkStatus());
  for (int k = 0; k < 120; k += 2) ASSERT_EQ(at(0).store().Delete(Id(absl::StrCat("hole", k))), absl::OkStatus());
  cluster_->Settle();
  ASSERT_GT(at(0).store().available_bytes(), 3u << 20);
  PutMany(1, 25, 256 << 10);
  const auto run = StartEvacuation(1);
  const EvacuationReport report = End(*run);
  EXPECT_EQ(report.objects, 25u) << report.trouble;
  EXPECT_EQ(report.left_objects, 0u) << report.trouble;
  EXPECT_LT(run->took, Seconds(2));
}

TEST_F(EvacuationTest, IdsThatAreInUseOnOneNodeAreKeptByAnother) {
  Build(3);
  const std::vector<std::string> names = PutMany(1, 40, 10'000);
  for (const std::string& name : names) ASSERT_EQ(at(0).Create(name, 100), absl::OkStatus());
  const auto run = StartEvacuation(1);
  EXPECT_EQ(End(*run).objects, 40u);
  EXPECT_LT(run->took, Seconds(2));
  for (const std::string& name : names) {
    EXPECT_TRUE(at(2).Has(name)) << name;
    ASSERT_EQ(at(0).store().Abort(Id(name), at(0).me), absl::OkStatus());
  }
}

TEST_F(EvacuationTest, StalledNodesAreSetAside) {
  Build(4);
  PutMany(1, 200, 10'000);
  at(2).Freeze({Seconds(30), Seconds(30), {}});  // its device answers, so that no connection breaks
  at(3).Freeze({Seconds(30), Seconds(30), Seconds(30)});
  const auto run = StartEvacuation(1, Seconds(20));
  const EvacuationReport report = End(*run, Seconds(20));
  EXPECT_EQ(report.objects, 200u) << report.trouble;
  EXPECT_LT(run->took, Seconds(5));
  EXPECT_EQ(at(0).store().statistics().kept_bytes, 2'000'000u);
  cluster_->RunFor(Seconds(30));
}

TEST_F(EvacuationTest, ARefusedObjectIsTakenOnceThereIsRoom) {
  Build(2);
  ASSERT_EQ(at(0).Put("there", 7'000'000), absl::OkStatus());
  PutMany(1, 20, 200'000);
  const auto run = StartEvacuation(1);
  cluster_->RunFor(Seconds(5));
  EXPECT_FALSE(run->report.has_value());
  ASSERT_EQ(at(0).store().Delete(Id("there")), absl::OkStatus());
  const EvacuationReport report = End(*run);
  EXPECT_EQ(report.objects, 20u) << report.trouble;
  EXPECT_LT(run->took, Seconds(9));
}

TEST_F(EvacuationTest, ANodeThatComesMeanwhileIsAskedAsWell) {
  Build(2);
  ASSERT_EQ(at(0).Put("there", 8'000'000), absl::OkStatus());
  PutMany(1, 20, 200'000);
  const auto run = StartEvacuation(1);
  cluster_->RunFor(Seconds(2));
  cluster_->Add();
  EXPECT_EQ(End(*run).objects, 20u);
  EXPECT_LT(run->took, Seconds(8));
}

// More than are remembered, and all that could be taken lies behind.
TEST_F(EvacuationTest, RefusalsBeyondTheRememberedOnesOverlookNoObject) {
  Build(2);
  ASSERT_EQ(at(0).Put("there", (8 << 20) - (100 << 10)), absl::OkStatus());
  const int count = static_cast<int>(Evacuation::kMaxWaiting) + 300;
  const std::vector<std::string> names = PutMany(1, count, 1000);
  const auto run = StartEvacuation(1);
  cluster_->RunFor(Seconds(3));
  EXPECT_FALSE(run->report.has_value());
  ASSERT_EQ(at(0).store().Delete(Id("there")), absl::OkStatus());
  const EvacuationReport report = End(*run);
  EXPECT_EQ(report.objects, static_cast<uint64_t>(count)) << report.trouble;
  EXPECT_LT(run->took, Seconds(15));
}

TEST_F(EvacuationTest, AnOutageOfTheDirectoryIsOutlasted) {
  Build(3);
  const std::vector<std::string> names = PutMany(1, 50, 10'000);
  at(0).Freeze({Seconds(6), Seconds(6), Seconds(6)});
  const auto run = StartEvacuation(1, Seconds(30));
  const EvacuationReport report = End(*run, Seconds(30));
  EXPECT_EQ(report.objects, 50u) << report.trouble;
  EXPECT_EQ(report.left_objects, 0u) << report.trouble;
}

TEST_F(EvacuationTest, ALeavingNodeKeepsNothing) {
  Build(3);
  PutMany(1, 20, 100'000);
  ASSERT_EQ(at(2).Put("large", 7'000'000), absl::OkStatus());
  ASSERT_EQ(at(0).Put("there", 7'000'000), absl::OkStatus());
  cluster_->Settle();
  const auto other = StartEvacuation(2, Seconds(20));
  const EvacuationReport report = Evacuate(1, Seconds(10));
  EXPECT_EQ(report.objects + report.left_objects, 20u);
  EXPECT_GT(report.objects, 5u);
  EXPECT_TRUE(absl::IsResourceExhausted(report.trouble)) << report.trouble;
  EXPECT_EQ(at(2).store().statistics().kept_bytes, 7'000'000u);
  End(*other, Seconds(20));
}

TEST_F(EvacuationTest, TheReportCountsLeftoversByReason) {
  Build(2);
  ASSERT_EQ(at(0).Put("there", 8'000'000), absl::OkStatus());
  PutMany(1, 10, 500'000);
  ASSERT_EQ(at(0).Create("x7", 100), absl::OkStatus());
  const EvacuationReport report = Evacuate(1, Seconds(5));
  EXPECT_EQ(report.left_objects, 10u);
  EXPECT_EQ(report.trouble.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(report.trouble.message(), "10 since no other node has room");
  ASSERT_EQ(at(0).store().Abort(Id("x7"), at(0).me), absl::OkStatus());
}

// ---- what is put until the end

TEST_F(EvacuationTest, PutsBeforeTheDoorClosedAreElsewhereAndLaterOnesRefused) {
  sim::HostOptions small;
  small.memory = 1 << 20;
  for (const auto pause : {base::Microseconds(1), base::Microseconds(20), base::Milliseconds(1)}) {
    Build(3, small);
    PutMany(1, 100, 1000);
    const auto run = StartEvacuation(1, Seconds(4));
    std::vector<std::string> names;
    PutUntilRefused(names, pause, *run).IgnoreError();  // it may have ended between two puts
    const EvacuationReport report = End(*run, Seconds(4));
    EXPECT_EQ(report.left_objects, 0u) << report.trouble;
    EXPECT_EQ(report.objects, 100 + names.size());
    EXPECT_TRUE(absl::IsUnavailable(at(1).Put("late", 10)));
    Leave(1);
    EXPECT_TRUE(absl::IsUnavailable(at(1).Put("later", 10)));
    for (const std::string& name : names) ASSERT_TRUE(at(0).Has(name) || at(2).Has(name)) << name;
    cluster_->ExpectClean();
  }
}

// Or the last of these could not be handed over any more.
TEST_F(EvacuationTest, UnderPutsWithoutEndTheDoorClosesWhileThereIsTimeForTheRest) {
  sim::ClusterOptions options;
  options.link.latency = base::Milliseconds(1);
  Build(2, {}, options);
  const auto run = StartEvacuation(1, Seconds(4));
  std::vector<std::string> names;
  EXPECT_TRUE(absl::IsUnavailable(PutUntilRefused(names, base::Milliseconds(2), *run)));
  EXPECT_EQ((cluster_->time.Now() - run->began).milliseconds() / 100, 30);
  const EvacuationReport report = End(*run, Seconds(4));
  EXPECT_EQ(report.objects, names.size()) << report.trouble;
  EXPECT_EQ(report.left_objects, 0u) << report.trouble;
}

TEST_F(EvacuationTest, TheDoorClosesEarlyWhenPutsOutpaceTheHandover) {
  sim::ClusterOptions options;
  options.link.latency = base::Milliseconds(5);
  Build(2, {}, options);
  const auto run = StartEvacuation(1, Seconds(16));
  std::vector<std::string> names;
  EXPECT_TRUE(absl::IsUnavailable(PutUntilRefused(names, base::Milliseconds(1), *run)));
  EXPECT_LT(cluster_->time.Now() - run->began, Seconds(3));
  const EvacuationReport report = End(*run, Seconds(16));
  EXPECT_EQ(report.objects, names.size()) << report.trouble;
  EXPECT_EQ(report.left_objects, 0u) << report.trouble;
}

TEST_F(EvacuationTest, AnObjectCreatedBeforeTheDoorClosesAndSealedAfterIsRefused) {
  Build(2);
  ASSERT_EQ(at(1).Create("x", 1000), absl::OkStatus());
  EXPECT_EQ(Evacuate(1).left_objects, 0u);
  EXPECT_TRUE(absl::IsUnavailable(at(1).Seal("x")));
  ASSERT_EQ(at(1).store().Abort(Id("x"), at(1).me), absl::OkStatus());
}

TEST_F(EvacuationTest, ADroppedEvacuationLetsTheNodeTakePutsAgain) {
  Build(2);
  ASSERT_EQ(at(0).Put("there", 8'000'000), absl::OkStatus());
  Put(1, "x", 1'000'000);
  {
    const auto run = StartEvacuation(1, Seconds(4));
    cluster_->RunFor(base::Milliseconds(3500));
    EXPECT_TRUE(absl::IsUnavailable(at(1).Put("y", 10)));
  }
  EXPECT_EQ(at(1).Put("y", 10), absl::OkStatus());
}

// ---- a peer that breaks the protocol

TEST_F(EvacuationTest, AnAnswerThatNoPeerWouldSendIsARefusal) {
  Build(2);
  Put(1, "x", 1000);
  int asked = 0;
  at(0).node().call_router().Register(
      Service::kObjects, [&asked](absl::Span<const uint8_t>, const CallRouter::Reply& reply) -> base::Pending {
        ++asked;
        reply({0, 99});
        return nullptr;
      });
  const EvacuationReport report = Evacuate(1, Seconds(5));
  EXPECT_EQ(report.left_objects, 1u);
  EXPECT_GT(asked, 2);
  EXPECT_TRUE(absl::IsUnavailable(report.trouble)) << report.trouble;
}

}  // namespace
}  // namespace tokamak::node
