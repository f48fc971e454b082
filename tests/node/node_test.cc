// Whole nodes: what is put on one is got on the others.
#include "lib/node/node.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;
using transport::Protocol;

TEST_F(NodeTest, AnObjectPutOnOneNodeIsGotOnTheOthersByEachProtocol) {
  Build(3);
  for (const Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    for (const uint64_t size : {uint64_t{1}, uint64_t{10'000}, uint64_t{1'000'000}}) {
      const std::string name = absl::StrCat(transport::ToString(protocol), size);
      Put(0, name, size, 10);
      EXPECT_EQ(cluster_->Get(at(1), name, By(protocol)), absl::OkStatus());
      EXPECT_EQ(cluster_->Get(at(2), name, By(protocol)), absl::OkStatus());
    }
    EXPECT_EQ(at(1).transfers_pulled(protocol), 3u);
    EXPECT_EQ(at(1).node().pulls().counters().pulled_by[static_cast<size_t>(protocol)], 3u);
  }
}

TEST_F(NodeTest, ThePhasesOfAPullAddUpToItsTime) {
  Build(3);
  for (const Protocol protocol : {Protocol::kAuto, Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    const std::string name = transport::ToString(protocol);
    Put(2, name, 1'000'000);
    ASSERT_EQ(cluster_->Get(at(1), name, By(protocol)), absl::OkStatus());  // connects
    cluster_->Settle();
    const std::string again = name + " again";
    Put(2, again, 1'000'000);
    cluster_->phases.TakeTotals();
    const base::Time begin = cluster_->time.Now();
    base::Duration took;
    ASSERT_EQ(cluster_->Get(at(1), again, By(protocol)), absl::OkStatus());
    took = cluster_->time.Now() - begin;
    const base::PhaseLog::Totals totals = cluster_->phases.TakeTotals();
    ASSERT_EQ(totals.activities, 1u) << name;
    const auto spent = [&totals](base::Phase phase) { return totals.phases[static_cast<size_t>(phase)]; };
    base::Duration all;
    for (const base::Duration phase : totals.phases) all = all + phase;
    EXPECT_LE(all, took) << name;
    EXPECT_GE(all, took * 9 / 10) << name << ": the rest is the get's answer";
    EXPECT_GT(spent(base::Phase::kDirectory), base::Duration()) << name;
    EXPECT_GT(spent(base::Phase::kRequest), base::Duration()) << name;
    if (protocol == Protocol::kRead) {
      EXPECT_GT(spent(base::Phase::kData), base::Duration()) << "a round trip, when the owner has said where";
    }
  }
}

TEST_F(NodeTest, EmptyObjectsAreObjects) {
  Build(2);
  for (const Protocol protocol : {Protocol::kAuto, Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    const std::string name = transport::ToString(protocol);
    Put(0, name, 0);
    Put(0, name + "m", 0, 100);
    EXPECT_EQ(cluster_->Get(at(1), name, By(protocol)), absl::OkStatus());
    EXPECT_EQ(cluster_->Get(at(1), name + "m", By(protocol)), absl::OkStatus());
  }
}

TEST_F(NodeTest, MetadataIsTheObjectsTail) {
  Build(2);
  Put(0, "x", 100, 23);
  const auto got = at(1).StartGet({"x"}, Within(Seconds(10)));
  cluster_->Await(got);
  ASSERT_TRUE(got->results[0].location.has_value());
  EXPECT_EQ(got->results[0].location->data_size, 100u);
  EXPECT_EQ(got->results[0].location->metadata_size, 23u);
  at(1).Release(*got);
}

TEST_F(NodeTest, ANameGoesWithItsObjectToEachCopy) {
  Build(3);
  const uint64_t sizes[] = {1, 1'000'000};  // brought by the directory's answer, or moved by a transfer
  for (const uint64_t size : sizes) {
    for (const size_t owner : {size_t{0}, size_t{2}}) {
      const std::string name = absl::StrCat("from ", owner, ", ", size);
      PutNamed(owner, name, size);
      ASSERT_EQ(cluster_->Get(at(1), name, Within(Seconds(10))), absl::OkStatus());
      EXPECT_EQ(at(1).store().Stat(Id(name))->name.text(), name);
      EXPECT_EQ(at(1).store().Stat(Id(name))->origin, store::Origin::kPulled);
    }
  }
  Put(0, "unnamed", 1);
  ASSERT_EQ(cluster_->Get(at(1), "unnamed", Within(Seconds(10))), absl::OkStatus());
  EXPECT_TRUE(at(1).store().Stat(Id("unnamed"))->name.empty());
}

TEST_F(NodeTest, ManyLongNamesAreAnnouncedInMessagesThatHaveRoom) {
  Build(2);
  const auto name_of = [](int number) {
    const std::string first = absl::StrCat(number, " ");
    return first + std::string(base::ObjectName::kMaxSize - first.size(), 'x');
  };
  for (int i = 0; i < 200; ++i) PutNamed(1, name_of(i), 10);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(cluster_->Get(at(0), name_of(i), Within(Seconds(10))), absl::OkStatus());
    EXPECT_EQ(at(0).store().Stat(Id(name_of(i)))->name.text(), name_of(i));
  }
}

TEST_F(NodeTest, ALocalObjectIsGotWithoutAsking) {
  Build(2);
  Put(1, "x", 100);
  EXPECT_EQ(cluster_->Get(at(1), "x", Within(Milliseconds(1))), absl::OkStatus());
  EXPECT_EQ(at(1).node().pulls().running(), 0u);
}

TEST_F(NodeTest, AGetWaitsForALaterPutElsewhere) {
  Build(3);
  const auto got = at(2).StartGet({"x"}, Within(Seconds(60)));
  cluster_->RunFor(Seconds(7));
  EXPECT_FALSE(got->done);
  Put(1, "x", 5000);
  const base::Time put = cluster_->time.Now();
  cluster_->Await(got);
  EXPECT_EQ(got->results[0].status, absl::OkStatus());
  EXPECT_LT(got->done_at - put, Milliseconds(5));
  at(2).Release(*got);
}

TEST_F(NodeTest, AGetWaitsForALaterPutHere) {
  Build(2);
  const auto got = at(1).StartGet({"x"}, Within(Seconds(60)));
  cluster_->RunFor(Seconds(3));
  ASSERT_EQ(at(1).Put("x", 5000), absl::OkStatus());
  cluster_->Await(got, Milliseconds(1));
  at(1).Release(*got);
}

TEST_F(NodeTest, ManyGetsShareOneTransfer) {
  Build(2);
  Put(0, "x", 2'000'000);
  std::vector<std::shared_ptr<sim::Got>> gets;
  for (int i = 0; i < 50; ++i) gets.push_back(at(1).StartGet({"x"}, Within(Seconds(10))));
  for (const auto& got : gets) {
    cluster_->Await(got);
    EXPECT_EQ(got->results[0].status, absl::OkStatus());
    at(1).Release(*got);
  }
  EXPECT_EQ(at(0).transfers_served(), 1u);
  EXPECT_EQ(at(1).node().pulls().counters().pulled, 1u);
}

TEST_F(NodeTest, OneGetOfManyObjectsIsAnsweredWhenAllAreHere) {
  Build(3);
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) {
    names.push_back(absl::StrCat(i));
    ASSERT_EQ(at(static_cast<size_t>(i) % 2).Put(names.back(), 1000 * static_cast<uint64_t>(i % 10)), absl::OkStatus());
  }
  for (const absl::Status& status : cluster_->GetAll(at(2), names)) EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(at(2).node().pulls().counters().pulled, 100u);
}

TEST_F(NodeTest, MorePullsThanOnePeerMayServeAtOnceTakeTurns) {
  sim::ClusterOptions options;
  options.peers.max_pulls = 4;
  Build(2, {}, options);
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) {
    names.push_back(absl::StrCat(i));
    ASSERT_EQ(at(0).Put(names.back(), 20'000), absl::OkStatus());
  }
  cluster_->Settle();
  const base::Time begin = cluster_->time.Now();
  for (const absl::Status& status : cluster_->GetAll(at(1), names)) EXPECT_EQ(status, absl::OkStatus());
  // 4 MB at 12.5 GB/s, 50 turns of some round trips each: nobody waits for a timer.
  EXPECT_LT(cluster_->time.Now() - begin, Milliseconds(8));
  EXPECT_GE(at(1).node().pulls().counters().queued, 196u);
}

TEST_F(NodeTest, ACopyIsAHolderToo) {
  Build(3);
  Put(0, "x", 100'000);
  EXPECT_EQ(cluster_->Get(at(1), "x"), absl::OkStatus());
  cluster_->Settle();
  ASSERT_EQ(at(0).store().Delete(base::ObjectId::FromName("x")), absl::OkStatus());
  cluster_->Settle();
  EXPECT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  EXPECT_EQ(at(1).transfers_served(), 1u);
}

class EnginesTest : public NodeTest, public testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Engines, EnginesTest, testing::Values(0, 1, 2));

TEST_P(EnginesTest, AllEnginesWorkHoweverManyThereAre) {
  sim::HostOptions machine;
  machine.engines = GetParam();
  Build(2, machine);
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) {
    names.push_back(absl::StrCat(i));
    ASSERT_EQ(at(0).Put(names.back(), 50'000), absl::OkStatus());
  }
  for (const absl::Status& status : cluster_->GetAll(at(1), names)) EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(at(0).transfers_served(), 40u);
}

TEST_P(EnginesTest, AnEngineThatEndsWithItsNodeNotifiesItsPeers) {
  sim::HostOptions machine;
  machine.engines = GetParam();
  Build(3, machine);
  ASSERT_EQ(at(1).Put("x", 4'000'000), absl::OkStatus());
  cluster_->Settle();
  const auto got = at(2).StartGet({"x"}, Within(Seconds(5)));
  ASSERT_TRUE(cluster_->RunUntil([&] { return at(1).node().pins_of_peers() == 1; }));
  at(1).EndEngines();
  EXPECT_TRUE(cluster_->RunUntil([&] { return got->done; }));
  EXPECT_FALSE(got->results[0].status.ok());
}

TEST_F(NodeTest, AGetWithoutATimeOutGetsLocalObjectsOnly) {
  Build(2);
  Put(0, "there", 100);
  Put(1, "here", 100);
  const auto got = at(1).StartGet({"here", "there"}, Within(base::Duration()));
  cluster_->Await(got, Milliseconds(1));
  EXPECT_EQ(got->results[0].status, absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(got->results[1].status));
  EXPECT_EQ(at(0).transfers_served(), 0u);
  at(1).Release(*got);
}

TEST_F(NodeTest, ALocalGetDoesNotPull) {
  Build(2);
  Put(0, "there", 100);
  GetOptions options = Within(Seconds(5));
  options.local_only = true;
  EXPECT_TRUE(absl::IsNotFound(cluster_->Get(at(1), "there", options)));
  EXPECT_EQ(at(0).transfers_served(), 0u);
}

TEST_F(NodeTest, AGetOfAMissingObjectReportsItAtItsTimeOut) {
  Build(2);
  const base::Time asked = cluster_->time.Now();
  EXPECT_TRUE(absl::IsNotFound(cluster_->Get(at(1), "nothing", Within(Milliseconds(300)))));
  EXPECT_EQ(cluster_->time.Now() - asked, Milliseconds(300));
  EXPECT_TRUE(absl::IsNotFound(cluster_->Get(at(1), "nothing", Within(Seconds(5)))));
}

TEST_F(NodeTest, ATimedOutGetReturnsThePresentObjects) {
  Build(2);
  Put(0, "x", 100);
  const auto got = at(1).StartGet({"x", "nothing"}, Within(Seconds(2)));
  cluster_->Await(got);
  EXPECT_EQ(got->results[0].status, absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(got->results[1].status)) << got->results[1].status;
  at(1).Release(*got);
}

TEST_F(NodeTest, ALeavingNodeLetsTransfersEndAndIsNotAskedAfterwards) {
  Build(3);
  Put(1, "x", 4'000'000);
  const auto got = at(2).StartGet({"x"}, Within(Seconds(10)));
  EXPECT_TRUE(cluster_->RunUntil([&] { return at(1).node().pins_of_peers() == 1; }));
  bool left = false;
  at(1).node().Leave([&](const absl::Status& status) { left = status.ok(); });
  cluster_->Await(got);
  EXPECT_EQ(got->results[0].status, absl::OkStatus());
  EXPECT_TRUE(cluster_->RunUntil([&] { return left && at(1).node().pins_of_peers() == 0; }));
  EXPECT_EQ(at(1).node().pins_of_peers_total(), 1u);
  at(2).Release(*got);
  ASSERT_EQ(at(2).store().Delete(base::ObjectId::FromName("x")), absl::OkStatus());
  cluster_->RunFor(Milliseconds(10));
  EXPECT_TRUE(absl::IsNotFound(cluster_->Get(at(0), "x", Within(Seconds(3)))));
}

}  // namespace
}  // namespace tokamak::node
