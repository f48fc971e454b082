// An endpoint that is about to end: what it may be dropped after, and what its peer makes of all
// that it had sent.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

// 500 Mb/s: a transfer has a middle.
WorldOptions SlowDrainWorld() {
  WorldOptions options;
  options.link.picoseconds_per_byte = 16000;
  return options;
}

class DrainTest : public ::testing::Test {
 protected:
  explicit DrainTest(const WorldOptions& options = SlowDrainWorld())
      : world_(options), owner_(world_.Add()), puller_(world_.Add()) {
    auto first = puller_.Pull(owner_, owner_.AddObject(1000), Protocol::kEager);
    EXPECT_TRUE(world_.Finish(first));
  }

  void Drain() {
    owner_.endpoint->Drain([this] { drained_ = true; });
    EXPECT_FALSE(drained_) << "inside the call";
  }
  bool RunUntilDrained() {
    return world_.RunUntil([this] { return drained_; }, Seconds(10));
  }

  World world_;
  Node& owner_;
  Node& puller_;
  bool drained_ = false;
};

TEST_F(DrainTest, AnIdleEndpointIsDrainedAtOnce) {
  Drain();
  EXPECT_TRUE(world_.RunUntil([this] { return drained_; }, Milliseconds(5)));
}

TEST_F(DrainTest, ChunksThatAreUnderWayArriveBeforeItIsDrained) {
  const uint64_t before = owner_.source.pins_ever();
  auto outcome = puller_.Pull(owner_, owner_.AddObject(100'000), Protocol::kEager);
  ASSERT_TRUE(world_.RunUntil([&] { return owner_.source.pins_ever() > before && owner_.source.pins() == 0; }));
  ASSERT_FALSE(outcome->done) << "all is copied into messages, but has not arrived";
  Drain();
  ASSERT_TRUE(RunUntilDrained());
  owner_.DropEndpoint();
  ASSERT_TRUE(world_.Finish(outcome));
  EXPECT_TRUE(outcome->status.ok()) << outcome->status;
  EXPECT_TRUE(outcome->right);
  world_.ExpectClean();
}

TEST_F(DrainTest, AnswersArriveToo) {
  owner_.endpoint->SetCallHandler(
      Handler([](absl::Span<const uint8_t>, const Reply& reply) { reply(std::vector<uint8_t>(10'000, 7)); }));
  size_t received = 0;
  const base::Pending pending =
      puller_.endpoint->Call(owner_.service, {}, Seconds(5), [&](absl::StatusOr<absl::Span<const uint8_t>> reply) {
        if (reply.ok()) received = reply->size();
      });
  world_.RunFor(base::Microseconds(100));  // it is on its way, which takes longer
  ASSERT_EQ(received, 0u);
  Drain();
  ASSERT_TRUE(RunUntilDrained());
  owner_.DropEndpoint();
  EXPECT_TRUE(world_.RunUntil([&] { return received == 10'000; }, Seconds(1)));
  world_.ExpectClean();
}

std::string NameOfDrain(const ::testing::TestParamInfo<Protocol>& info) { return ToString(info.param); }

class ServedDrainTest : public DrainTest, public ::testing::WithParamInterface<Protocol> {};

TEST_P(ServedDrainTest, AwaitsServedTransfersAndRefusesFurtherOnes) {
  auto outcome = puller_.Pull(owner_, owner_.AddObject(4 << 20), GetParam());
  ASSERT_TRUE(world_.RunUntil([&] { return owner_.source.pins() == 1; }));
  Drain();
  auto during = puller_.Pull(owner_, owner_.AddObject(1000), GetParam());
  ASSERT_TRUE(world_.Finish(during));
  EXPECT_EQ(during->status.code(), absl::StatusCode::kUnavailable) << during->status;
  ASSERT_FALSE(drained_);
  ASSERT_TRUE(RunUntilDrained());
  EXPECT_EQ(owner_.source.pins(), 0u);
  ASSERT_TRUE(world_.Finish(outcome));
  EXPECT_TRUE(outcome->status.ok()) << outcome->status;
  auto after = puller_.Pull(owner_, owner_.AddObject(1000), GetParam());
  ASSERT_TRUE(world_.Finish(after));
  EXPECT_EQ(after->status.code(), absl::StatusCode::kUnavailable) << after->status;
  EXPECT_EQ(puller_.endpoint->counters().connections_lost, 0u) << "it was refused, not cut";
  world_.ExpectClean();
}

INSTANTIATE_TEST_SUITE_P(All, ServedDrainTest, ::testing::Values(Protocol::kRead, Protocol::kWrite), NameOfDrain);

TEST_F(DrainTest, ACallThatIsHeldDelaysNothing) {
  Reply held;
  owner_.endpoint->SetCallHandler(Handler([&held](absl::Span<const uint8_t>, const Reply& reply) { held = reply; }));
  absl::Status end;
  const base::Pending pending = puller_.endpoint->Call(
      owner_.service, {}, Seconds(60), [&](absl::StatusOr<absl::Span<const uint8_t>> reply) { end = reply.status(); });
  ASSERT_TRUE(world_.RunUntil([&] { return static_cast<bool>(held); }, Seconds(1)));
  Drain();
  ASSERT_TRUE(RunUntilDrained());
  EXPECT_TRUE(end.ok()) << end;
  owner_.DropEndpoint();
  EXPECT_TRUE(world_.RunUntil([&] { return !end.ok(); }, Seconds(1))) << "the caller is told";
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable) << end;
  world_.ExpectClean();
}

TEST_F(DrainTest, APeerThatGoesDoesNotKeepItWaiting) {
  auto outcome = puller_.Pull(owner_, owner_.AddObject(100'000), Protocol::kEager);
  ASSERT_TRUE(world_.RunUntil([&] { return owner_.source.pins() == 1; }));
  Drain();
  puller_.DropEndpoint();
  EXPECT_TRUE(RunUntilDrained());
  world_.ExpectClean();
}

class FastDrainTest : public DrainTest {
 protected:
  FastDrainTest() : DrainTest(Fast()) {}
  static WorldOptions Fast() {
    WorldOptions options;
    options.link = FastLink();
    return options;
  }
};

// More than one task of the puller may copy, and the word that the owner has left behind it.
TEST_F(FastDrainTest, AllDataThatCameBeforeTheOwnerLeftCounts) {
  constexpr uint64_t kObjects = 12;
  ASSERT_TRUE(
      world_.Finish(puller_.Pull(owner_, owner_.AddObject(2'000'000), Protocol::kEager)));  // the window is wide
  const uint64_t before = owner_.source.pins_ever();
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (uint64_t i = 0; i < kObjects; ++i) {
    outcomes.push_back(puller_.Pull(owner_, owner_.AddObject(100'000 + i), Protocol::kEager));
  }
  ASSERT_TRUE(world_.RunUntil([&] { return owner_.source.pins_ever() == before + kObjects; }));
  const base::Timer busy = puller_.loop.Post([this] { puller_.loop.Spend(Milliseconds(100)); });
  Drain();
  ASSERT_TRUE(RunUntilDrained());
  EXPECT_FALSE(outcomes.back()->done);
  owner_.DropEndpoint();
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(world_.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
    EXPECT_TRUE(outcome->right);
  }
  world_.ExpectClean();
}

}  // namespace
}  // namespace tokamak::transport::testing
