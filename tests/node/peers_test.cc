#include "lib/node/cluster/peers.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "sim/time/sim_loop.h"
#include "tests/node/trouble_directory.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;
using Use = Peers::Use;
using End = Peers::End;

class PeersTest : public testing::Test {
 protected:
  void Join(const directory::NodeId& id, uint64_t incarnation = 1, std::vector<std::string> engines = {"10.0.0.1:7000"},
            base::Duration lease = Seconds(1000)) {
    directory::JoinRequest request;
    request.node = {id, incarnation, std::move(engines), "soft", 0};
    request.lease = lease;
    calls_.push_back(directory_.local().Join(request, Seconds(1),
                                             [](const auto& joined) { EXPECT_TRUE(joined.ok()) << joined.status(); }));
    scheduler_.RunFor(base::Nanoseconds(1));
  }
  void JoinFor(const directory::NodeId& id, base::Duration lease, base::Duration grace) {
    directory::JoinRequest request;
    request.node = {id, 1, {"10.0.0.1:7000"}, "soft", 0};
    request.lease = lease;
    request.grace = grace;
    calls_.push_back(directory_.local().Join(request, Seconds(1),
                                             [](const auto& joined) { EXPECT_TRUE(joined.ok()) << joined.status(); }));
    scheduler_.RunFor(base::Nanoseconds(1));
  }
  absl::Status Refresh() {
    absl::Status status = absl::InternalError("no answer");
    const base::Pending asked = peers_->Refresh([&](const absl::Status& s) { status = s; });
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << "the callback ran inside the call";
    scheduler_.RunFor(options_.directory_deadline);
    return status;
  }
  void Pull(const directory::NodeId& id, End end) {
    peers_->Begin(id);
    peers_->Ended(id, end);
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  TroubleDirectory directory_{loop_};
  std::vector<base::Pending> calls_;
  PeersOptions options_;
  std::unique_ptr<Peers> peers_ = std::make_unique<Peers>(loop_, directory_, options_);
};

TEST_F(PeersTest, NobodyIsKnownBeforeTheDirectoryWasAsked) {
  Join("b");
  EXPECT_EQ(peers_->UseOf("b"), Use::kUnknown);
  EXPECT_EQ(peers_->Find("b"), nullptr);
}

TEST_F(PeersTest, ARefreshBringsNamesAndAddresses) {
  Join("b", 1, {"10.0.0.2:7000", "10.0.0.2:7001"});
  EXPECT_TRUE(Refresh().ok());
  ASSERT_NE(peers_->Find("b"), nullptr);
  EXPECT_EQ(peers_->UseOf("b"), Use::kReady);
  ASSERT_EQ(peers_->Find("b")->engines.size(), 2u);
  EXPECT_EQ(peers_->Find("b")->engines[1].ToString(), "10.0.0.2:7001");
}

TEST_F(PeersTest, ANodeWithAMalformedAddressIsUnknown) {
  Join("b", 1, {"somewhere"});
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ(peers_->UseOf("b"), Use::kUnknown);
}

TEST_F(PeersTest, SeveralRefreshesShareOneQuestion) {
  int answers = 0;
  for (int i = 0; i < 10; ++i) calls_.push_back(peers_->Refresh([&](const absl::Status&) { ++answers; }));
  scheduler_.RunFor(Seconds(1));
  EXPECT_EQ(answers, 10);
  EXPECT_EQ(directory_.Count("roster"), 1u);
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ(directory_.Count("roster"), 2u);
}

TEST_F(PeersTest, AnOutageLeavesTheBookAsItWas) {
  Join("b");
  EXPECT_TRUE(Refresh().ok());
  directory_.out_of_reach = true;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Refresh()));
  EXPECT_EQ(peers_->UseOf("b"), Use::kReady);
}

TEST_F(PeersTest, NoMorePullsRunFromOnePeerThanAllowed) {
  Join("b");
  EXPECT_TRUE(Refresh().ok());
  for (uint32_t i = 0; i < options_.max_pulls; ++i) peers_->Begin("b");
  EXPECT_EQ(peers_->UseOf("b"), Use::kBusy);
  peers_->Ended("b", End::kOther);
  EXPECT_EQ(peers_->UseOf("b"), Use::kReady);
}

TEST_F(PeersTest, APeerThatFailedIsLeftAloneForAWhileAndLookedUpAgain) {
  Join("b");
  EXPECT_TRUE(Refresh().ok());
  Pull("b", End::kFailed);
  EXPECT_EQ(peers_->UseOf("b"), Use::kShunned);
  EXPECT_TRUE(peers_->Find("b")->suspect);
  scheduler_.RunFor(options_.first_back_off);
  EXPECT_EQ(peers_->UseOf("b"), Use::kReady);
}

TEST_F(PeersTest, TheBackOffDoublesUpToItsLimitAndASuccessClearsIt) {
  Join("b");
  EXPECT_TRUE(Refresh().ok());
  base::Duration expected = options_.first_back_off;
  for (int i = 0; i < 12; ++i) {
    Pull("b", End::kFailed);
    EXPECT_EQ(peers_->Find("b")->back_off, expected);
    expected = std::min(expected * 2, options_.max_back_off);
    scheduler_.RunUntil(peers_->Find("b")->shunned_until);
  }
  Pull("b", End::kOk);
  EXPECT_EQ(peers_->UseOf("b"), Use::kReady);
  Pull("b", End::kFailed);
  EXPECT_EQ(peers_->Find("b")->back_off, options_.first_back_off);
}

TEST_F(PeersTest, ManyPullsThatFailTogetherCountAsOneFailure) {
  Join("b");
  EXPECT_TRUE(Refresh().ok());
  for (int i = 0; i < 10; ++i) peers_->Begin("b");
  for (int i = 0; i < 10; ++i) peers_->Ended("b", End::kFailed);
  EXPECT_EQ(peers_->Find("b")->back_off, options_.first_back_off);
}

TEST_F(PeersTest, AfterAFailureAPeersBulkEnginesRest) {
  Join("b");
  EXPECT_TRUE(Refresh().ok());
  Pull("b", End::kFailed);
  EXPECT_FALSE(peers_->BulkRests(*peers_->Find("b")));
  scheduler_.RunFor(options_.first_back_off);
  peers_->Begin("b");
  peers_->RestBulk("b");
  peers_->Ended("b", End::kFailed);
  EXPECT_EQ(peers_->UseOf("b"), Use::kShunned);
  EXPECT_TRUE(peers_->BulkRests(*peers_->Find("b")));
  scheduler_.RunFor(options_.bulk_rest);
  EXPECT_FALSE(peers_->BulkRests(*peers_->Find("b")));
}

TEST_F(PeersTest, ALaterLifeOfAPeerStartsWithACleanSheet) {
  Join("b", 1, {"10.0.0.2:7000"}, Seconds(3));
  EXPECT_TRUE(Refresh().ok());
  peers_->Begin("b");
  Pull("b", End::kFailed);
  scheduler_.RunFor(Seconds(3));
  Join("b", 2, {"10.0.0.3:7000"});
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ(peers_->UseOf("b"), Use::kReady);
  EXPECT_EQ(peers_->Find("b")->engines[0].ToString(), "10.0.0.3:7000");
  EXPECT_EQ(peers_->Find("b")->pulls, 1u);
  peers_->Ended("b", End::kOther);
}

TEST_F(PeersTest, TheSameLifeStaysShunnedThoughItWasLookedUp) {
  Join("b");
  EXPECT_TRUE(Refresh().ok());
  Pull("b", End::kFailed);
  const base::Pending asked = peers_->Refresh([](const absl::Status&) {});
  scheduler_.RunFor(Milliseconds(1));
  EXPECT_EQ(peers_->UseOf("b"), Use::kShunned);
  EXPECT_FALSE(peers_->Find("b")->suspect);
}

TEST_F(PeersTest, APeerThatIsGoneIsForgottenWhenItsLastPullEnds) {
  Join("b", 1, {"10.0.0.2:7000"}, Seconds(1));
  EXPECT_TRUE(Refresh().ok());
  peers_->Begin("b");
  scheduler_.RunFor(Seconds(2));
  EXPECT_TRUE(Refresh().ok());
  ASSERT_NE(peers_->Find("b"), nullptr);
  peers_->Ended("b", End::kFailed);
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ(peers_->Find("b"), nullptr);
}

TEST_F(PeersTest, AChangeOfAPeerIsReportedOnce) {
  std::vector<PeerChange> told;
  options_.on_change = [&](const directory::NodeId& id, PeerChange change) {
    EXPECT_EQ(id, "b");
    told.push_back(change);
  };
  peers_ = std::make_unique<Peers>(loop_, directory_, options_);
  Join("b", 1, {"10.0.0.2:7000"}, Seconds(3));
  EXPECT_TRUE(Refresh().ok());
  for (int i = 0; i < 3; ++i) {
    Pull("b", End::kFailed);
    scheduler_.RunUntil(peers_->Find("b")->shunned_until);
  }
  Pull("b", End::kOk);
  Pull("b", End::kOk);
  scheduler_.RunFor(Seconds(3));
  Join("b", 2, {"10.0.0.2:7000"}, Seconds(3));
  EXPECT_TRUE(Refresh().ok());
  scheduler_.RunFor(Seconds(3));
  EXPECT_TRUE(Refresh().ok());
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ(told, (std::vector<PeerChange>{PeerChange::kFails, PeerChange::kAnswers, PeerChange::kRestarted,
                                           PeerChange::kLeft}));
}

TEST_F(PeersTest, AWatchReportsSilenceAndReturnOfAnUnusedNode) {
  std::vector<PeerChange> told;
  options_.on_change = [&](const directory::NodeId&, PeerChange change) { told.push_back(change); };
  options_.watch_every = Seconds(1);
  peers_ = std::make_unique<Peers>(loop_, directory_, options_);
  peers_->Watch();
  JoinFor("b", Seconds(3), Seconds(60));
  scheduler_.RunFor(Milliseconds(2900));
  EXPECT_EQ(peers_->UseOf("b"), Use::kReady);
  scheduler_.RunFor(Seconds(5));
  EXPECT_EQ(peers_->UseOf("b"), Use::kUnknown) << "nobody pulls from it";
  EXPECT_EQ(told, std::vector<PeerChange>{PeerChange::kSilent});
  JoinFor("b", Seconds(1000), Seconds(60));
  scheduler_.RunFor(Seconds(5));
  EXPECT_EQ(told, (std::vector<PeerChange>{PeerChange::kSilent, PeerChange::kBack}));
  EXPECT_EQ(peers_->UseOf("b"), Use::kReady);
}

TEST_F(PeersTest, AWatchGoesOnAfterAnOutage) {
  options_.watch_every = Seconds(1);
  peers_ = std::make_unique<Peers>(loop_, directory_, options_);
  directory_.out_of_reach = true;
  peers_->Watch();
  scheduler_.RunFor(Seconds(10));
  directory_.out_of_reach = false;
  Join("b");
  scheduler_.RunFor(Seconds(4));
  EXPECT_EQ(peers_->UseOf("b"), Use::kReady);
}

TEST_F(PeersTest, ManyNodesAskTheDirectoryLessOften) {
  for (int i = 0; i < 200; ++i) Join("n" + std::to_string(i));
  EXPECT_TRUE(Refresh().ok());
  options_.watch_every = Milliseconds(100);
  peers_ = std::make_unique<Peers>(loop_, directory_, options_);
  peers_->Watch();
  scheduler_.RunFor(Seconds(1));
  const size_t before = directory_.Count("roster");
  scheduler_.RunFor(Seconds(20));
  EXPECT_EQ(directory_.Count("roster") - before, 10u) << "200 x 200 x 50 us is 2 s";
}

TEST_F(PeersTest, MayBeDroppedWhileTheDirectoryIsAsked) {
  const base::Pending asked = peers_->Refresh([](const absl::Status&) { FAIL(); });
  peers_.reset();
  scheduler_.RunFor(Seconds(5));
}

TEST_F(PeersTest, ADroppedAskerGetsNoAnswer) {
  int answers = 0;
  base::Pending dropped = peers_->Refresh([](const absl::Status&) { FAIL(); });
  const base::Pending stays = peers_->Refresh([&](const absl::Status&) { ++answers; });
  dropped.reset();
  scheduler_.RunFor(Seconds(5));
  EXPECT_EQ(answers, 1);
}

}  // namespace
}  // namespace tokamak::node
