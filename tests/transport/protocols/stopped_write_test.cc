// Writes that are stopped in the middle: memory goes back to its owner with proof that nothing is
// written there any more, which on some devices is a key that was revoked, and on others only the
// end of the connection.
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/posting_device.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;

constexpr uint64_t kLargeWrite = 64 << 20;  // a second on the way, and more than is posted at once

class StoppedWriteTest : public ::testing::TestWithParam<bool> {
 protected:
  StoppedWriteTest() : world_(SlowWorld()) {
    NodeOptions options;
    options.like_iwarp = GetParam();
    owner_ = &world_.Add(options);
    options.wrap = [this](std::unique_ptr<verbs::Device> device) {
      return WithPostSend(std::move(device),
                          [this](verbs::QueuePair& queue_pair, absl::Span<const verbs::SendRequest> requests) {
                            if (mute_ && requests[0].opcode == verbs::Opcode::kSend) {
                              return verbs::PostResult{requests.size(), absl::OkStatus()};
                            }
                            return queue_pair.PostSend(requests);
                          });
    };
    puller_ = &world_.Add(options);
    id_ = owner_->AddObject(kLargeWrite);
  }

  static WorldOptions SlowWorld() {
    WorldOptions options;
    options.link.picoseconds_per_byte = 16000;  // 500 Mb/s
    return options;
  }

  static bool RevokingProves() { return !GetParam(); }

  // Cancels a pull in its middle. Until when did the pull keep its memory?
  base::Duration CancelInTheMiddle() {
    const auto outcome = puller_->Pull(*owner_, id_, Protocol::kWrite);
    world_.RunFor(Milliseconds(20));
    EXPECT_FALSE(outcome->done);
    const base::Time at = puller_->loop.Now();
    mute_ = mute_when_cancelled_;
    puller_->endpoint->CancelPull(outcome->pull);
    EXPECT_TRUE(world_.Finish(outcome));
    EXPECT_TRUE(absl::IsCancelled(outcome->status)) << outcome->status;
    return outcome->done_at - at;
  }

  // The connection was kept where a revoked key is proof; else the next pull makes another.
  void ExpectAnotherConnectionOnlyWithoutProof() {
    const auto next = puller_->Pull(*owner_, id_, Protocol::kWrite);
    ASSERT_TRUE(world_.Finish(next));
    EXPECT_TRUE(next->right) << next->status;
    EXPECT_EQ(puller_->endpoint->counters().connections_opened, RevokingProves() ? 1u : 2u);
    world_.ExpectClean();
  }

  World world_;
  Node* puller_;
  Node* owner_;
  base::ObjectId id_;
  bool mute_when_cancelled_ = false;
  bool mute_ = false;  // the puller's messages do not leave
};

INSTANTIATE_TEST_SUITE_P(Where, StoppedWriteTest, ::testing::Bool(), [](const auto& tested) {
  return std::string(tested.param ? "RevokingProvesNothing" : "RevokingProves");
});

TEST_P(StoppedWriteTest, AnOwnerThatStopsReportsItOrEndsTheConnection) {
  EXPECT_LT(CancelInTheMiddle(), kDrainGrace);
  ExpectAnotherConnectionOnlyWithoutProof();
}

// All of it is posted already.
TEST_P(StoppedWriteTest, AnAlmostFinishedWriteIsAwaitedOverTheConnection) {
  id_ = owner_->AddObject(4 << 20);
  const auto outcome = puller_->Pull(*owner_, id_, Protocol::kWrite);
  world_.RunFor(Milliseconds(20));
  puller_->endpoint->CancelPull(outcome->pull);
  ASSERT_TRUE(world_.Finish(outcome));
  EXPECT_TRUE(absl::IsCancelled(outcome->status)) << outcome->status;
  ASSERT_TRUE(world_.Finish(puller_->Pull(*owner_, id_, Protocol::kWrite)));
  EXPECT_EQ(puller_->endpoint->counters().connections_opened, 1u);
  world_.ExpectClean();
}

TEST_P(StoppedWriteTest, ARefusalBeforeTheFirstByteKeepsTheConnection) {
  PullRequest request = puller_->Request(*owner_, base::ObjectId::FromName("nowhere"), Protocol::kWrite);
  request.size = {kLargeWrite, 0};
  const auto outcome = puller_->Pull(request);
  ASSERT_TRUE(world_.Finish(outcome));
  EXPECT_TRUE(absl::IsNotFound(outcome->status)) << outcome->status;
  ASSERT_TRUE(world_.Finish(puller_->Pull(*owner_, id_, Protocol::kWrite)));
  EXPECT_EQ(puller_->endpoint->counters().connections_opened, 1u);
}

// An owner that does not hear of it writes on. After a grace the key is revoked, or
// the connection ended.
TEST_P(StoppedWriteTest, AnOwnerThatWritesOnIsNotWaitedForLong) {
  mute_when_cancelled_ = true;
  const base::Duration kept = CancelInTheMiddle();
  EXPECT_GE(kept, kDrainGrace);
  EXPECT_LT(kept, kDrainGrace + Milliseconds(10));
  EXPECT_EQ(puller_->endpoint->counters().connections_lost, RevokingProves() ? 0u : 1u);
  world_.ExpectClean();
}

}  // namespace
}  // namespace tokamak::transport::testing
