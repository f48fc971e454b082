// Whole nodes in trouble: holders that vanish or do not have it, no room, gets that are dropped, a
// directory that is away.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;
using transport::Protocol;

class NodeTroubleTest : public NodeTest {};

class EachProtocol : public NodeTest, public testing::WithParamInterface<Protocol> {};
INSTANTIATE_TEST_SUITE_P(Protocols, EachProtocol, testing::Values(Protocol::kEager, Protocol::kRead, Protocol::kWrite),
                         [](const testing::TestParamInfo<Protocol>& protocol) {
                           return std::string(transport::ToString(protocol.param));
                         });

// ---- holders

TEST_P(EachProtocol, TheNextHolderIsAskedWhenOneVanishesInTheMiddle) {
  Build(4);
  Put(1, "x", 3'000'000);
  ASSERT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  cluster_->Settle();
  const auto got = at(3).StartGet({"x"}, By(GetParam()));
  ASSERT_TRUE(cluster_->RunUntil([&] { return at(1).node().pins_of_peers() + at(2).node().pins_of_peers() > 0; }));
  cluster_->RunFor(base::Microseconds(50));
  cluster_->Crash(at(1).node().pins_of_peers() > 0 ? 1 : 2);
  cluster_->Await(got);
  EXPECT_EQ(got->results[0].status, absl::OkStatus());
  EXPECT_EQ(at(3).node().pulls().counters().next_holder, 1u);
  at(3).Release(*got);
}

TEST_P(EachProtocol, DroppingTheLastGetCancelsTheTransfer) {
  Build(2);
  Put(0, "x", 4'000'000);
  const auto got = at(1).StartGet({"x"}, By(GetParam()));
  ASSERT_TRUE(Serves(0));
  cluster_->RunFor(base::Microseconds(30));
  got->handle.reset();
  cluster_->RunFor(Seconds(5));
  EXPECT_FALSE(got->done);
  EXPECT_FALSE(at(1).Has("x"));
  EXPECT_EQ(at(1).node().pulls().running(), 0u);
  EXPECT_EQ(at(0).node().pins_of_peers(), 0u);
  EXPECT_EQ(at(1).store().statistics().used_bytes, 0u);
}

TEST_P(EachProtocol, AGetThatComesWhileAPullIsCancelledGetsTheObject) {
  Build(2);
  Put(0, "x", 4'000'000);
  const auto dropped = at(1).StartGet({"x"}, By(GetParam()));
  ASSERT_TRUE(Serves(0));
  cluster_->RunFor(base::Microseconds(30));
  dropped->handle.reset();
  EXPECT_EQ(cluster_->Get(at(1), "x", By(GetParam())), absl::OkStatus());
  EXPECT_EQ(at(1).node().pulls().counters().failed_attempts, 0u);
}

TEST_P(EachProtocol, ATimeOutInTheMiddleOfATransferLeavesNothingBehind) {
  sim::ClusterOptions options;
  options.link.picoseconds_per_byte = 80'000;  // 100 Mb/s
  Build(2, {}, options);
  Put(0, "x", 4'000'000);
  GetOptions get = By(GetParam());
  get.timeout = Milliseconds(100);
  EXPECT_TRUE(absl::IsDeadlineExceeded(cluster_->Get(at(1), "x", get)));
  cluster_->RunFor(Seconds(5));
  EXPECT_EQ(at(1).store().statistics().used_bytes, 0u);
}

TEST_F(NodeTroubleTest, AnObjectOnItsWayAtTheTimeOutIsNotReportedMissing) {
  sim::ClusterOptions options;
  options.link.picoseconds_per_byte = 80'000;  // 100 Mb/s
  Build(2, {}, options);
  const auto early = at(1).StartGet({"x"}, Within(Milliseconds(200)));
  cluster_->RunFor(Milliseconds(10));  // the directory has said that nobody has it
  Put(0, "x", 4'000'000);
  cluster_->Await(early);
  EXPECT_TRUE(absl::IsDeadlineExceeded(early->results[0].status)) << early->results[0].status;
  cluster_->RunFor(Seconds(5));
}

TEST_F(NodeTroubleTest, AStaleHolderIsWithdrawnAndThePullGoesOn) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {  // which holder is asked first is up to chance
    sim::ClusterOptions options;
    options.seed = seed;
    Build(4, {}, options);
    Put(2, "x", 1000);
    ASSERT_EQ(Say(directory::Update::Kind::kAnnounce, "x", "n1", GenerationOn(2, "x")), absl::OkStatus());
    EXPECT_EQ(cluster_->Get(at(3), "x"), absl::OkStatus());
    cluster_->Settle();
    const bool asked_wrongly = at(3).node().pulls().counters().stale_holders > 0;
    EXPECT_EQ(Holders("x").size(), asked_wrongly ? 2u : 3u);
    cluster_->ExpectClean();
  }
}

TEST_F(NodeTroubleTest, AGetWaitsForAHolderWhenAllAreStale) {
  Build(3);
  ASSERT_EQ(Say(directory::Update::Kind::kAnnounce, "x", "n1"), absl::OkStatus());
  const auto got = at(2).StartGet({"x"}, Within(Seconds(30)));
  cluster_->RunFor(Seconds(2));
  EXPECT_TRUE(Holders("x").empty());
  EXPECT_FALSE(got->done);
  Put(1, "x", 500);
  cluster_->Await(got, Seconds(1));
  EXPECT_EQ(got->results[0].status, absl::OkStatus());
  at(2).Release(*got);
}

TEST_F(NodeTroubleTest, AnEntryThatNamesTheAskerItselfIsCorrected) {
  Build(2);
  ASSERT_EQ(Say(directory::Update::Kind::kAnnounce, "x", "n1"), absl::OkStatus());
  EXPECT_FALSE(cluster_->Get(at(1), "x", Within(Seconds(1))).ok());
  EXPECT_TRUE(Holders("x").empty());
}

TEST_F(NodeTroubleTest, AHolderWithOtherSizesThanTheDirectorysIsNotShunned) {
  Build(3);
  Put(1, "x", 1000);
  Put(1, "y", 1000);
  // Somebody announced it with other sizes before.
  const base::Generation generation = GenerationOn(1, "x");
  ASSERT_EQ(Say(directory::Update::Kind::kWithdraw, "x", "n1", generation), absl::OkStatus());
  ASSERT_EQ(Say(directory::Update::Kind::kAnnounce, "x", "n1", generation, 999), absl::OkStatus());
  const absl::Status status = cluster_->Get(at(2), "x", Within(Milliseconds(1500)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_NE(status.message().find("1000"), std::string::npos) << status;
  const base::Time asked = cluster_->time.Now();
  EXPECT_EQ(cluster_->Get(at(2), "y"), absl::OkStatus());
  EXPECT_LT(cluster_->time.Now() - asked, Milliseconds(5));
}

TEST_F(NodeTroubleTest, AHolderThatWasRestartedElsewhereIsLookedUpAfterTheFirstFailure) {
  Build(3);
  Put(1, "x", 1000);
  Put(1, "y", 1000);
  ASSERT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  cluster_->Crash(1);
  EXPECT_FALSE(cluster_->Get(at(2), "y", Within(Seconds(6))).ok());
  cluster_->Restart(1, "10.0.0.77");
  cluster_->Settle();
  Put(1, "z", 1000);
  const base::Time asked = cluster_->time.Now();
  EXPECT_EQ(cluster_->Get(at(2), "z"), absl::OkStatus());
  EXPECT_LT(cluster_->time.Now() - asked, cluster_->options.endpoint.connect_deadline + Milliseconds(100));
}

TEST_F(NodeTroubleTest, AnObjectOfACrashedNodeIsNotFoundOnceItsLeaseHasEnded) {
  Build(3);
  Put(1, "x", 1000);
  cluster_->Crash(1);
  const absl::Status early = cluster_->Get(at(2), "x", Within(Seconds(3)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(early)) << early;
  cluster_->RunFor(cluster_->options.membership.lease);
  EXPECT_TRUE(absl::IsNotFound(cluster_->Get(at(2), "x", Within(Seconds(3)))));
}

// ---- gets

TEST_F(NodeTroubleTest, ADroppedGetDoesNotDisturbOthers) {
  Build(2);
  Put(0, "x", 4'000'000);
  const auto stays = at(1).StartGet({"x"}, Within(Seconds(10)));
  const auto goes = at(1).StartGet({"x"}, Within(Seconds(10)));
  ASSERT_TRUE(Serves(0));
  goes->handle.reset();
  cluster_->Await(stays);
  EXPECT_EQ(stays->results[0].status, absl::OkStatus());
  EXPECT_FALSE(goes->done);
  at(1).Release(*stays);
}

TEST_F(NodeTroubleTest, AGetDroppedWhileTheDirectoryIsAskedLeavesNothing) {
  Build(2);
  const auto got = at(1).StartGet({"x"}, Within(Seconds(10)));
  cluster_->RunFor(Milliseconds(1));
  got->handle.reset();
  EXPECT_EQ(at(1).node().pulls().running(), 0u);
}

TEST_F(NodeTroubleTest, AGetThatWasAnsweredPullsNoLongerThoughItsHandleLives) {
  Build(2);
  const auto got = at(1).StartGet({"x"}, Within(Milliseconds(10)));
  cluster_->Await(got);
  EXPECT_EQ(at(1).node().pulls().running(), 0u);
  EXPECT_NE(got->handle, nullptr);
}

TEST_F(NodeTroubleTest, ALocalCreatorWinsOverAPull) {
  Build(2);
  ASSERT_EQ(at(1).Create("x", 1000), absl::OkStatus());
  Put(0, "x", 1000);
  const auto got = at(1).StartGet({"x"}, Within(Seconds(10)));
  cluster_->RunFor(Seconds(1));
  EXPECT_FALSE(got->done);
  ASSERT_EQ(at(1).Seal("x"), absl::OkStatus());
  cluster_->Await(got, Milliseconds(1));
  EXPECT_EQ(got->results[0].status, absl::OkStatus());
  EXPECT_EQ(at(0).transfers_served(), 0u);
  at(1).Release(*got);
}

TEST_F(NodeTroubleTest, AnObjectThatItsLocalCreatorGivesUpIsPulled) {
  Build(2);
  ASSERT_EQ(at(1).Create("x", 1000), absl::OkStatus());
  Put(0, "x", 1000);
  const auto got = at(1).StartGet({"x"}, Within(Seconds(10)));
  cluster_->RunFor(Seconds(1));
  ASSERT_EQ(at(1).store().Abort(Id("x"), at(1).me), absl::OkStatus());
  cluster_->Await(got, Seconds(1));
  EXPECT_EQ(got->results[0].status, absl::OkStatus());
  at(1).Release(*got);
}

// ---- room

TEST_F(NodeTroubleTest, AnObjectLargerThanTheStoreIsAClearErrorAtOnce) {
  Build(1);
  sim::HostOptions small;
  small.memory = 1 << 20;
  cluster_->Add(small);
  Put(0, "x", 2 << 20);
  const base::Time asked = cluster_->time.Now();
  const absl::Status status = cluster_->Get(at(1), "x", Within(Seconds(60)));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.message().find("larger than this store"), std::string::npos) << status;
  EXPECT_LT(cluster_->time.Now() - asked, Seconds(1));
}

TEST_F(NodeTroubleTest, WithoutRoomAPullWaitsUntilPinsAreReleased) {
  sim::HostOptions small;
  small.memory = 1 << 20;
  small.cache = true;
  Build(2, small);
  Put(1, "old", 800'000);
  ASSERT_TRUE(at(1).store().Acquire(Id("old"), at(1).me).ok());
  Put(0, "x", 500'000);
  const auto got = at(1).StartGet({"x"}, Within(Seconds(60)));
  cluster_->RunFor(Seconds(5));
  EXPECT_FALSE(got->done);
  EXPECT_GT(at(1).node().pulls().counters().waited_for_room, 0u);
  at(1).Release("old");
  cluster_->Await(got, Seconds(1));
  EXPECT_EQ(got->results[0].status, absl::OkStatus());
  at(1).Release(*got);
}

TEST_F(NodeTroubleTest, APullWithoutRoomUntilTheTimeOutSaysWhy) {
  sim::HostOptions small;
  small.memory = 1 << 20;
  Build(2, small);
  Put(1, "old", 800'000);
  Put(0, "x", 500'000);
  const absl::Status status = cluster_->Get(at(1), "x", Within(Seconds(3)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_NE(status.message().find("--cache"), std::string::npos) << status;
}

TEST_F(NodeTroubleTest, PulledCopiesMakeRoomForOthers) {
  sim::HostOptions small;
  small.memory = 1 << 20;
  Build(2, small);
  for (int i = 0; i < 20; ++i) {
    const std::string name = absl::StrCat(i);
    Put(0, name, 300'000);
    EXPECT_EQ(cluster_->Get(at(1), name), absl::OkStatus());
    ASSERT_EQ(at(0).store().Delete(Id(name)), absl::OkStatus());
  }
  EXPECT_GT(at(1).store().statistics().evicted_pulled.objects, 10u);
}

// ---- the directory

TEST_F(NodeTroubleTest, AGetWaitsWhileTheDirectoryIsAwayAndThenGoesOn) {
  Build(3);
  Put(1, "x", 1000);
  cluster_->network.Cut(at(2).address, at(0).address);
  cluster_->network.Cut(at(0).address, at(2).address);
  const auto got = at(2).StartGet({"x"}, Within(Seconds(60)));
  cluster_->RunFor(Seconds(8));
  EXPECT_FALSE(got->done);
  cluster_->network.Heal();
  cluster_->Await(got, Seconds(15));
  EXPECT_EQ(got->results[0].status, absl::OkStatus());
  at(2).Release(*got);
}

// Both ways of being asked where something is, by Stat and by Delete, and each at once.
TEST_F(NodeTroubleTest, NobodyWaitsForADirectoryThatIsAway) {
  Build(2);
  Put(1, "x", 1000);
  cluster_->network.Cut(at(1).address, at(0).address);
  cluster_->RunFor(Seconds(6));
  ASSERT_TRUE(at(1).node().membership().directory_away());
  std::optional<absl::Status> located, deleted;
  const base::Pending locate =
      at(1).node().Locate(Id("x"), base::Duration(), [&](const auto& info) { located = info.status(); });
  const base::Pending deletion = at(1).node().Delete(Id("x"), [&](const auto& gone) { deleted = gone.status(); });
  EXPECT_FALSE(located.has_value() || deleted.has_value()) << "answered inside the call";
  cluster_->RunFor(base::Nanoseconds(1));
  EXPECT_TRUE(absl::IsUnavailable(located.value_or(absl::OkStatus())));
  EXPECT_TRUE(absl::IsUnavailable(deleted.value_or(absl::OkStatus())));
  EXPECT_TRUE(at(1).Has("x"));
}

// In the first moments of an outage, before the node has noticed it.
TEST_F(NodeTroubleTest, ADirectoryThatDoesNotAnswerInTimeIsUnavailable) {
  Build(2);
  Put(1, "x", 1000);
  cluster_->network.Cut(at(1).address, at(0).address);
  std::optional<absl::Status> located, waited, deleted;
  const base::Pending locate =
      at(1).node().Locate(Id("x"), base::Duration(), [&](const auto& info) { located = info.status(); });
  const base::Pending wait =
      at(1).node().Locate(Id("y"), Seconds(1), [&](const auto& info) { waited = info.status(); });
  const base::Pending deletion = at(1).node().Delete(Id("x"), [&](const auto& gone) { deleted = gone.status(); });
  cluster_->RunFor(Seconds(2));
  ASSERT_TRUE(located.has_value() && deleted.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*located)) << *located;
  EXPECT_TRUE(absl::IsUnavailable(*deleted)) << *deleted;
  cluster_->RunFor(Seconds(1));
  ASSERT_TRUE(waited.has_value()) << "by its own time-out and one deadline of the directory's";
  EXPECT_TRUE(absl::IsUnavailable(*waited)) << *waited;
}

TEST_F(NodeTroubleTest, WithoutTheDirectoryTheSecondHolderIsAskedWhenTheFirstLostTheObject) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {  // which holder is asked first is up to chance
    sim::ClusterOptions options;
    options.seed = seed;
    Build(4, {}, options);
    Put(1, "x", 1000);
    ASSERT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
    cluster_->Settle();
    ASSERT_EQ(cluster_->Get(at(3), "x"), absl::OkStatus());  // from now on it knows both
    at(3).store().Evict(1 << 30);
    for (size_t i = 1; i <= 3; ++i) cluster_->network.Cut(at(i).address, at(0).address);
    cluster_->RunFor(Seconds(6));
    at(2).store().Evict(1 << 30);
    const base::Time asked = cluster_->time.Now();
    EXPECT_EQ(cluster_->Get(at(3), "x"), absl::OkStatus());
    EXPECT_LT(cluster_->time.Now() - asked, Milliseconds(5));
    cluster_->network.Heal();
    cluster_->RunFor(Seconds(10));
    cluster_->ExpectClean();
  }
}

TEST_F(NodeTroubleTest, APullOfOneContentGetsNoOtherOfTheSameId) {
  Build(3);
  Put(1, "x", 1000);
  const base::Generation there = GenerationOn(1, "x");
  ASSERT_EQ(Say(directory::Update::Kind::kWithdraw, "x", "n1", there), absl::OkStatus());
  ASSERT_EQ(Say(directory::Update::Kind::kAnnounce, "x", "n1"), absl::OkStatus());
  EXPECT_EQ(Read(2, "x", Seconds(1)), base::kNoGeneration);
  EXPECT_EQ(at(1).node().pins_of_peers_total(), 0u);
  cluster_->RunFor(Seconds(40));  // what the directory has lost is found out
  EXPECT_EQ(Read(2, "x"), there);
}

TEST_F(NodeTroubleTest, AnUnnoticedOutageHoldsUpNoGetOfAKnownPlace) {
  for (const base::Duration known_for : {Milliseconds(10), Milliseconds(1500)}) {
    Build(3);
    Put(1, "x", 1000);
    ASSERT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
    cluster_->RunFor(known_for);
    at(2).store().Evict(1 << 30);
    for (const size_t i : {1, 2}) {
      cluster_->network.Cut(at(i).address, at(0).address);
      cluster_->network.Cut(at(0).address, at(i).address);
    }
    const base::Time asked = cluster_->time.Now();
    EXPECT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
    EXPECT_LT(cluster_->time.Now() - asked, Milliseconds(60));
    EXPECT_FALSE(at(2).node().membership().directory_away()) << "it is known now";
    cluster_->network.Heal();
    cluster_->RunFor(Seconds(10));
    EXPECT_EQ(Holders("x"), (std::vector<directory::NodeId>{"n1", "n2"}));
    cluster_->ExpectClean();
  }
}

TEST_F(NodeTroubleTest, ATimeOutReportsThatTheDirectoryIsAway) {
  Build(3);
  Put(1, "x", 1000);
  cluster_->network.Cut(at(2).address, at(0).address);
  const absl::Status status = cluster_->Get(at(2), "x", Within(Seconds(10)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_NE(status.message().find("the directory is away: directory at 10.0.0.1:7000"), std::string::npos) << status;

  // Also one that ends before the directory's own deadline, and before anybody has noticed.
  EXPECT_NE(cluster_->Get(at(2), "x", Within(base::Milliseconds(500))).message().find("the directory is away: "),
            std::string::npos);
  cluster_->network.Cut(at(1).address, at(0).address);
  ASSERT_FALSE(at(1).node().membership().directory_away());
  const absl::Status early = cluster_->Get(at(1), "y", Within(base::Milliseconds(5)));
  EXPECT_NE(early.message().find("the directory has not answered yet"), std::string::npos) << early;
}

TEST_F(NodeTroubleTest, AfterARestartOfTheDirectoryEverythingIsFoundAgain) {
  Build(3);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(at(1).Put(absl::StrCat(i), 100), absl::OkStatus());
  cluster_->Settle();
  cluster_->Crash(0);
  cluster_->RunFor(Seconds(20));
  cluster_->Restart(0);
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back(absl::StrCat(i));
  for (const absl::Status& status : cluster_->GetAll(at(2), names)) EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(at(1).node().membership().counters().re_announcements, 2u);
}

TEST_F(NodeTroubleTest, TheEngineOfANodeThatEndsAnswersAllThatRan) {
  Build(3);
  Put(0, "x", 4'000'000);
  const auto got = at(1).StartGet({"x"}, Within(Seconds(3)));
  ASSERT_TRUE(Serves(0));
  at(1).EndEngines();
  cluster_->Await(got);
  EXPECT_TRUE(absl::IsDeadlineExceeded(got->results[0].status));
  EXPECT_NE(got->results[0].status.message().find("engine has ended"), std::string::npos) << got->results[0].status;
}

}  // namespace
}  // namespace tokamak::node
