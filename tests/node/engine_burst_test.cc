// Engines whose peers call more than a busy control loop gets to. Here the two kinds differ.
#include <memory>
#include <vector>

#include "tests/node/engine_bench.h"

namespace tokamak::node {
namespace {

using base::Microseconds;
using base::Milliseconds;
using base::Seconds;

// A control loop that is busy for a second while eight peers call it 250 times each.
class BurstBench : public EngineBench {
 protected:
  using EngineBench::EngineBench;

  void Connect(sim::ClusterOptions options) {
    options.endpoint.first_slots = options.endpoint.receive_slots;  // windows that are large from the start
    Build(9, {}, options);
    for (size_t i = 1; i < 9; ++i) Call(i, 0);
    EXPECT_TRUE(AwaitAnswers(8));
  }
  void CallInABurst(base::Duration busy_for) {
    const base::Timer busy = at(0).loop.Post([this, busy_for] { at(0).loop.Spend(busy_for); });
    cluster_->RunFor(Microseconds(1));
    for (int n = 0; n < 250; ++n) {
      for (size_t i = 1; i < 9; ++i) Call(i, 0);
    }
  }
  void CallInABurstAndWait() {
    CallInABurst(Seconds(1));
    EXPECT_TRUE(AwaitAnswers(8 + 8 * 250));
  }
};

// An engine on the busy loop takes no more from its peers than that loop handles: credits hold them
// back, and nobody is refused.
class LocalBurstTest : public BurstBench {
 protected:
  LocalBurstTest() : BurstBench(kLocalEngine) {}
};

TEST_F(LocalBurstTest, ABurstIsHeldBackByCreditsAndNotRefused) {
  Build(9);
  for (size_t i = 1; i < 9; ++i) Call(i, 0);
  EXPECT_TRUE(AwaitAnswers(8));
  CallInABurstAndWait();
  EXPECT_EQ(Count(absl::StatusCode::kOk), answers_.size());
}

TEST_F(LocalBurstTest, WithLargeWindowsPeersThatAskTooMuchWait) {
  Connect({});
  CallInABurstAndWait();
  EXPECT_EQ(Count(absl::StatusCode::kOk), answers_.size());
}

// As a directory's node is when all its nodes' programs ask at once: nobody's lease is refused.
TEST_F(LocalBurstTest, NodesKeepTheirLeases) {
  sim::ClusterOptions options;
  options.membership.renew = Milliseconds(300);
  Connect(options);
  std::vector<MembershipCounters> before;
  for (size_t i = 1; i < 9; ++i) before.push_back(at(i).node().membership().counters());
  for (int second = 0; second < 2; ++second) {
    CallInABurst(Milliseconds(700));
    cluster_->RunFor(Seconds(1));
  }
  for (size_t i = 1; i < 9; ++i) {
    const MembershipCounters& after = at(i).node().membership().counters();
    EXPECT_GT(after.renewals, before[i - 1].renewals) << i;
    EXPECT_EQ(after.failed_renewals, before[i - 1].failed_renewals) << i;
  }
}

// An engine on another loop goes on taking calls, and has to refuse those that the control loop
// does not get to.
class ThreadedBurstTest : public BurstBench {
 protected:
  ThreadedBurstTest() : BurstBench(kThreadedEngine) {}
};

// Some are refused, none is lost.
TEST_F(ThreadedBurstTest, PeersThatAskTooMuchAreRefusedAndNothingBreaks) {
  Connect({});
  CallInABurstAndWait();
  EXPECT_GT(Count(absl::StatusCode::kUnavailable), 100u);
  EXPECT_GT(Count(absl::StatusCode::kOk), 1000u);
  EXPECT_EQ(Count(absl::StatusCode::kUnavailable) + Count(absl::StatusCode::kOk), answers_.size());
}

TEST_F(ThreadedBurstTest, CallsOfNodesAboutThemselvesAreRefusedLast) {
  Connect({});
  CallInABurst(Seconds(1));
  cluster_->RunFor(Milliseconds(100));  // by now others are refused
  std::vector<uint8_t> about_itself = RequestOf(Service::kDirectory, 10);
  about_itself[1] = kLastKindOfOwnLife;
  ASSERT_TRUE(IsOfOwnLife(about_itself));
  std::vector<base::Pending> calls;
  size_t answered = 0, refused = 0;
  for (size_t i = 1; i < 9; ++i) {
    for (size_t n = 0; n < kOwnCalls; ++n) {
      calls.push_back(EngineOf(i).Call(AddressOf(0), about_itself, Seconds(20), [&](const auto& reply) {
        ++answered;
        if (absl::IsUnavailable(reply.status())) ++refused;
      }));
    }
  }
  EXPECT_TRUE(cluster_->RunUntil([&] { return answered == calls.size(); }));
  EXPECT_EQ(refused, 0u);
  EXPECT_GT(Count(absl::StatusCode::kUnavailable), 100u) << "some of the programs' were refused";
}

}  // namespace
}  // namespace tokamak::node
