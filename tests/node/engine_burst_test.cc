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

// An engine on the busy loop takes from its peers what that loop gets to: credits hold them back.
// Calls that come at once, beyond that, wait their turn, and some are refused as by any engine.
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

TEST_F(LocalBurstTest, WithLargeWindowsPeersThatAskTooMuchWaitOrAreRefused) {
  Connect({});
  CallInABurstAndWait();
  EXPECT_GT(Count(absl::StatusCode::kOk), 1000u);
  EXPECT_EQ(Count(absl::StatusCode::kUnavailable) + Count(absl::StatusCode::kOk), answers_.size());
}

// A directory's node whose nodes have more for it than it does in their deadline: 40 of them call
// 128 times at once, and each call keeps it busy for a millisecond.
TEST_F(LocalBurstTest, WhatNodesSayOfTheirOwnLivesDoesNotWaitForWhatProgramsAsk) {
  constexpr size_t kNodes = 40, kCallsOfEach = 128;
  constexpr base::Duration kWork = Milliseconds(1);
  sim::ClusterOptions options;
  options.endpoint.first_slots = options.endpoint.receive_slots;
  Build(kNodes + 1, {}, options);
  for (size_t i = 1; i <= kNodes; ++i) Call(i, 0);
  ASSERT_TRUE(AwaitAnswers(kNodes));
  size_t handled = 0;
  Engine::Handlers handlers;
  handlers.call = [&](absl::Span<const uint8_t>, transport::Reply reply) -> base::Pending {
    ++handled;
    at(0).loop.Spend(kWork);
    reply({});
    return nullptr;
  };
  handlers.pin = [](transport::PinId, const base::ObjectVersion&) {};
  handlers.unpin = [](transport::PinId) {};
  EngineOf(0).Serve(std::move(handlers));
  const base::Timer busy = at(0).loop.Post([this] { at(0).loop.Spend(Milliseconds(100)); });
  cluster_->RunFor(Microseconds(1));
  for (size_t n = 0; n < kCallsOfEach; ++n) {
    for (size_t i = 1; i <= kNodes; ++i) Call(i, 0);
  }
  cluster_->RunFor(Milliseconds(10));  // they are all there
  std::vector<uint8_t> about_itself = RequestOf(Service::kDirectory, 10);
  about_itself[1] = kLastKindOfOwnLife;
  bool answered = false;
  const base::Pending own = EngineOf(1).Call(AddressOf(0), about_itself, Seconds(20), [&](const auto& reply) {
    EXPECT_TRUE(reply.ok()) << reply.status();
    answered = true;
  });
  const base::Time asked = at(1).loop.Now();
  ASSERT_TRUE(cluster_->RunUntil([&] { return answered; }));
  EXPECT_LT(at(1).loop.Now() - asked, Milliseconds(700)) << handled << " calls came first";
  EXPECT_TRUE(AwaitAnswers(kNodes * (1 + kCallsOfEach)));
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
