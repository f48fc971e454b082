#include "lib/node/pulls/pull_attempt.h"

#include <memory>
#include <string>
#include <vector>

#include "tests/node/membership_fixture.h"
#include "tests/node/node_fixture.h"
#include "tests/node/pulls/pull_bench.h"

namespace tokamak::node {
namespace {

constexpr uint64_t kSize = 100000, kLarge = 2 * kShortWay;

// Transfers of the object x from node 1 to a place in the store of node 0, through its engines.
class PullAttemptTest : public NodeTest, public PullAttempt::Owner {
 protected:
  // Node 1 has the object; the place for it is reserved.
  void Prepare(uint64_t size, size_t engines_used = 1) {
    sim::HostOptions host;
    host.memory = 16 << 20;
    Build(2, host);
    Put(1, "x", size);
    std::vector<Engine*> engines;
    for (size_t i = 0; i < engines_used; ++i) engines.push_back(&at(0).engine(i));
    copies_ = std::make_unique<FakeCopies>(at(0).store());
    membership_ =
        std::make_unique<Membership>(at(0).loop, at(0).store(), *at(0).served(), *copies_,
                                     directory::NodeInfo{"bench", 1, {"10.9.9.9:7000"}, "", 0}, MembershipOptions());
    bench_ = std::make_unique<PullBench>(at(0).loop, at(0).store(), *at(0).served(), *membership_, *copies_, engines);
    bench_->RefreshPeers();
    cluster_->RunFor(base::Milliseconds(1));
    place_ = std::make_unique<PullPlace>(at(0).store(), Id("x"));
    attempt_ = std::make_unique<PullAttempt>(bench_->context, *this);
    directory::LocatedObject info;
    info.generation = GenerationOn(1, "x");
    info.data_size = size;
    ASSERT_EQ(place_->Reserve(info), absl::OkStatus());
  }
  void TearDown() override {
    attempt_.reset();
    place_.reset();
    bench_.reset();
    membership_.reset();
    NodeTest::TearDown();
  }
  void OnMoved(const absl::Status& status) override {
    EXPECT_FALSE(attempt_->moving());
    ends_.push_back(status);
  }

  transport::PullRequest Request() {
    transport::PullRequest request;
    request.id = Id("x");
    request.generation = GenerationOn(1, "x");
    request.size = {place_->size(), 0};
    request.arrived = place_->arrived();
    return request;
  }
  absl::Status Begin() { return Begin(Request()); }
  absl::Status Begin(const transport::PullRequest& request) {
    return attempt_->Begin(at(1).name, request, place_->memory(), place_->moved());
  }
  absl::Status End() {
    EXPECT_TRUE(cluster_->RunUntil([&] { return !ends_.empty(); }, base::Seconds(300)));
    return ends_.empty() ? absl::InternalError("did not end") : ends_.back();
  }
  const Peers::Peer& peer() const { return *bench_->peers.Find((*cluster_)[1].name); }

  std::unique_ptr<FakeCopies> copies_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<PullBench> bench_;
  std::unique_ptr<PullPlace> place_;
  std::unique_ptr<PullAttempt> attempt_;
  std::vector<absl::Status> ends_;
};

TEST_F(PullAttemptTest, MovesTheBytesOfTheHoldersObject) {
  Prepare(kSize);
  ASSERT_EQ(Begin(), absl::OkStatus());
  EXPECT_TRUE(attempt_->moving());
  EXPECT_TRUE(ends_.empty());
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(attempt_->holder(), at(1).name);
  EXPECT_EQ(attempt_->report().size.total(), kSize);
  place_->Seal();
  EXPECT_TRUE(at(0).IsRight(Id("x"), *at(0).store().Find(Id("x"))));
}

TEST_F(PullAttemptTest, TakesASlotOfTheHolderAndGivesItBack) {
  Prepare(kSize);
  ASSERT_EQ(Begin(), absl::OkStatus());
  EXPECT_EQ(peer().pulls, 1u);
  EXPECT_TRUE(bench_->freed.empty());
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(peer().pulls, 0u);
  EXPECT_EQ(bench_->freed, std::vector<directory::NodeId>{at(1).name});
}

TEST_F(PullAttemptTest, ACancelledAttemptTouchesTheMemoryNoMore) {
  Prepare(kLarge);
  ASSERT_EQ(Begin(), absl::OkStatus());
  attempt_->Cancel();
  EXPECT_TRUE(attempt_->moving());
  EXPECT_TRUE(absl::IsCancelled(End())) << ends_.back();
  place_->Cut(attempt_->report().arrived);
}

TEST_F(PullAttemptTest, AHolderThatHasNoSuchObjectIsNotInTrouble) {
  Prepare(kSize);
  transport::PullRequest request = Request();
  request.generation = base::Generation{77};
  ASSERT_EQ(Begin(request), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(End())) << ends_.back();
  EXPECT_EQ(bench_->peers.UseOf(at(1).name), Peers::Use::kReady);
}

TEST_F(PullAttemptTest, AHolderThatIsGoneIsLeftAloneForAWhile) {
  Prepare(kSize);
  at(1).EndEngines();
  ASSERT_EQ(Begin(), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(End())) << ends_.back();
  EXPECT_TRUE(peer().suspect);
  EXPECT_EQ(bench_->peers.UseOf(at(1).name), Peers::Use::kShunned);
}

TEST_F(PullAttemptTest, AnAttemptDoesNotBeginWithoutAnEngine) {
  Prepare(kSize);
  at(0).EndEngines();
  EXPECT_TRUE(absl::IsUnavailable(Begin()));
  EXPECT_FALSE(attempt_->moving());
  EXPECT_EQ(peer().pulls, 0u);
}

TEST_F(PullAttemptTest, LargeObjectsGoBetweenEnginesForBulk) {
  Prepare(kLarge, /*engines_used=*/2);
  ASSERT_EQ(Begin(), absl::OkStatus());
  EXPECT_EQ(bench_->context.bulk_pulls, 1u);
  EXPECT_EQ(at(0).engine(1).pulls(), 1u);
  EXPECT_EQ(End(), absl::OkStatus());
}

TEST_F(PullAttemptTest, SmallObjectsTakeTheShortWay) {
  Prepare(kSize, /*engines_used=*/2);
  ASSERT_EQ(Begin(), absl::OkStatus());
  EXPECT_EQ(bench_->context.bulk_pulls, 0u);
  EXPECT_EQ(at(0).engine(0).pulls(), 1u);
  EXPECT_EQ(End(), absl::OkStatus());
}

TEST_F(PullAttemptTest, AllObjectsTakeTheShortWayWhileBulkRests) {
  Prepare(kLarge, /*engines_used=*/2);
  bench_->peers.RestBulk(at(1).name);
  ASSERT_EQ(Begin(), absl::OkStatus());
  EXPECT_EQ(at(0).engine(0).pulls(), 1u);
  EXPECT_EQ(End(), absl::OkStatus());
}

}  // namespace
}  // namespace tokamak::node
