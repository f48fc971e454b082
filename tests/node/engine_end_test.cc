// The contract of an engine (engine.h) when its endpoint ends in the middle of its work.
#include <algorithm>
#include <memory>
#include <vector>

#include "tests/node/engine_bench.h"

namespace tokamak::node {
namespace {

using base::Microseconds;
using base::Milliseconds;
using base::Seconds;

class EngineEndTest : public EngineBench, public testing::WithParamInterface<size_t> {
 protected:
  EngineEndTest() : EngineBench(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Both, EngineEndTest, testing::Values(kLocalEngine, kThreadedEngine), kNameOfEngine);

TEST_P(EngineEndTest, CallsUnderWayAndWaitingEndWithTheEngineInTheirOrder) {
  Build(2);
  at(1).node().call_router().Register(Service::kObjects, [](absl::Span<const uint8_t>, CallRouter::Reply reply) {
    struct Kept final : base::Handle {
      explicit Kept(CallRouter::Reply r) : reply(std::move(r)) {}
      CallRouter::Reply reply;
    };
    return std::make_unique<Kept>(std::move(reply));
  });
  for (size_t i = 0; i < 1000; ++i) Call(0, 1);
  cluster_->RunFor(Milliseconds(5));
  EXPECT_TRUE(answers_.empty());
  const verbs::Address address = EngineOf(0).address();
  at(0).EndEngines();
  EXPECT_FALSE(EngineOf(0).open());
  EXPECT_EQ(EngineOf(0).address(), address);
  EXPECT_TRUE(answers_.empty());
  EXPECT_TRUE(AwaitAnswers(1000, Milliseconds(1)));
  EXPECT_EQ(Count(absl::StatusCode::kUnavailable), 1000u);
  EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end()));
}

TEST_P(EngineEndTest, PullsUnderWayEndWithTheEngineInTheirOrder) {
  Build(2);
  Put(1, "x", kSize);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(Pull(0, 1, "x", kSize), absl::OkStatus());
  cluster_->RunFor(Microseconds(3));
  at(0).EndEngines();
  EXPECT_TRUE(ended_.empty());
  EXPECT_TRUE(AwaitPulls(20, Milliseconds(1)));
  EXPECT_EQ(EngineOf(0).pulls(), 0u);
  for (size_t i = 0; i < ended_.size(); ++i) {
    EXPECT_EQ(ended_[i], pulls_[i].get());
    EXPECT_TRUE(absl::IsUnavailable(ended_[i]->status)) << ended_[i]->status;
  }
  DropPlaces(0);
}

TEST_P(EngineEndTest, AnEngineThatHasEndedTakesNothing) {
  Build(2);
  at(0).EndEngines();
  Call(0, 1);
  CallForItself(0, 1);
  EXPECT_TRUE(answers_.empty());
  EXPECT_TRUE(AwaitAnswers(2, Milliseconds(1)));
  EXPECT_EQ(Count(absl::StatusCode::kUnavailable), 2u);
  const absl::Status pull = Pull(0, 1, "x", kSize);
  EXPECT_TRUE(absl::IsUnavailable(pull)) << pull;
  EngineOf(0).Cancel(1);
  EngineOf(0).Pinned(1, absl::NotFoundError("nobody asked"));
  DropPlaces(0);
}

TEST_P(EngineEndTest, WhatEndsWithTheEngineMayAskAgain) {
  Build(2);
  std::vector<base::Pending> calls;
  int ends = 0;
  const std::vector<uint8_t> request = RequestOf(Service::kObjects, 10);
  const auto ask = [&](const auto& ask_again) -> void {
    calls.push_back(EngineOf(0).programs().Call(AddressOf(1), request, Seconds(20), [&, ask_again](const auto& reply) {
      EXPECT_TRUE(absl::IsUnavailable(reply.status())) << reply.status();
      if (++ends < 5) ask_again(ask_again);
    }));
  };
  ask(ask);
  at(0).EndEngines();
  EXPECT_TRUE(cluster_->RunUntil([&] { return ends == 5; }, Milliseconds(1)));
}

// Machines that vanish in the middle of everything: no callback runs afterwards, and handles that
// are left are inert.
TEST_P(EngineEndTest, NothingIsAnsweredAfterTheEngineIsDropped) {
  Build(3);
  Put(1, "x", kSize);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(Pull(2, 1, "x", kSize), absl::OkStatus());
  for (int i = 0; i < 1000; ++i) Call(2, 1);
  std::vector<base::Pending> of_a_peer;
  for (int i = 0; i < 200; ++i) {
    of_a_peer.push_back(
        EngineOf(0).programs().Call(AddressOf(2), RequestOf(Service::kObjects, 10), Seconds(2), [](const auto&) {}));
  }
  cluster_->RunFor(Microseconds(5));
  bool drained = false;
  EngineOf(2).Drain([&] { drained = true; });
  const size_t answers = answers_.size(), ends = ended_.size();
  cluster_->Crash(2);
  cluster_->RunFor(Seconds(10));
  calls_.clear();
  EXPECT_EQ(answers_.size(), answers);
  EXPECT_EQ(ended_.size(), ends);
  EXPECT_FALSE(drained);
}

TEST_P(EngineEndTest, HandlesThatAreDroppedAfterTheEndAreInert) {
  Build(2);
  for (size_t i = 0; i < 400; ++i) Call(0, 1);
  cluster_->RunFor(Microseconds(5));
  at(0).EndEngines();
  calls_.clear();
  const size_t answers = answers_.size();
  cluster_->RunFor(Seconds(1));
  EXPECT_EQ(answers_.size(), answers);
}

}  // namespace
}  // namespace tokamak::node
