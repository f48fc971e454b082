// Transfers that fail: the puller gets an error, pins come back, and returned memory is not
// touched. The link is slow (500 Mb/s), so that there is a middle of a transfer to disturb.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/limited_device.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Duration;
using base::Microseconds;
using base::Milliseconds;
using base::Seconds;

constexpr uint64_t kLarge = 4 << 20;  // 67 ms on the way
const Duration kMoments[] = {Duration(),        Microseconds(1),  Microseconds(9),     Microseconds(60),
                             Microseconds(200), Milliseconds(1),  Milliseconds(5),     Milliseconds(20),
                             Milliseconds(45),  Milliseconds(66), Microseconds(67300), Milliseconds(68),
                             Milliseconds(90)};

WorldOptions SlowWorld() {
  WorldOptions options;
  options.link.picoseconds_per_byte = 16000;
  return options;
}

class FailureTest : public ::testing::TestWithParam<Protocol> {
 protected:
  Node& AddNode(World& world, bool on_demand = false, uint32_t bulk_queue_pairs = 1) {
    NodeOptions options;
    options.on_demand = on_demand;
    options.endpoint.bulk_queue_pairs = bulk_queue_pairs;
    return world.Add(options);
  }
  // A pull that works, over a connection that is there already when the test goes on.
  void ExpectPullWorks(World& world, Node& puller, Node& owner) {
    auto outcome = puller.Pull(owner, owner.AddObject(100000, 10), GetParam());
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
    EXPECT_TRUE(outcome->right);
  }
};

std::string NameOfFailure(const ::testing::TestParamInfo<Protocol>& info) { return ToString(info.param); }

TEST_P(FailureTest, AnObjectThatIsNotThereIsNotFound) {
  World world;
  Node& owner = AddNode(world);
  Node& puller = AddNode(world);
  PullRequest request = puller.Request(owner, base::ObjectId::FromName("nowhere"), GetParam());
  for (uint64_t size : {0, 1000}) {
    request.size = {size, 0};
    auto outcome = puller.Pull(request);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_EQ(outcome->status.code(), absl::StatusCode::kNotFound) << outcome->status;
  }
  ExpectPullWorks(world, puller, owner);
  world.ExpectClean();
}

TEST_P(FailureTest, ASizeThatDiffersFromTheExpectedOneFails) {
  World world;
  Node& owner = AddNode(world);
  Node& puller = AddNode(world);
  const base::ObjectId id = owner.AddObject(50000, 100);
  for (ObjectSize wrong : {ObjectSize{50001, 100}, ObjectSize{50000, 99}, ObjectSize{50100, 0}, ObjectSize{0, 0}}) {
    PullRequest request = puller.Request(owner, id, GetParam());
    request.size = wrong;
    auto outcome = puller.Pull(request);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_EQ(outcome->status.code(), absl::StatusCode::kFailedPrecondition) << outcome->status;
    EXPECT_NE(outcome->status.message().find("50000"), absl::string_view::npos) << outcome->status;
  }
  ExpectPullWorks(world, puller, owner);
  world.ExpectClean();
  EXPECT_EQ(puller.endpoint->counters().connections_opened, 1u);
}

TEST_P(FailureTest, MemoryOfAnotherSizeIsRefused) {
  World world;
  Node& owner = AddNode(world);
  Node& puller = AddNode(world);
  const base::ObjectId id = owner.AddObject(50000, 100);
  SinkOptions sink;
  for (uint64_t size : {1, 50099, 50101}) {
    sink.memory = puller.arena.Take(size);
    auto outcome = puller.Pull(owner, id, GetParam(), sink);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_EQ(outcome->status.code(), absl::StatusCode::kInvalidArgument) << outcome->status;
  }
  ExpectPullWorks(world, puller, owner);
  world.ExpectClean();
}

TEST_P(FailureTest, CancellingIsSafeAtAnyMoment) {
  for (bool on_demand : {false, true}) {
    World world(SlowWorld());
    Node& owner = AddNode(world, on_demand, 2);
    Node& puller = AddNode(world, on_demand, 2);
    ExpectPullWorks(world, puller, owner);
    const base::ObjectId id = owner.AddObject(kLarge);
    int cancelled = 0;
    for (Duration moment : kMoments) {
      auto outcome = puller.Pull(owner, id, GetParam());
      if (moment > Duration()) world.RunFor(moment);
      const bool was_done = outcome->done;
      const base::Time at = puller.loop.Now();
      puller.endpoint->CancelPull(outcome->pull);
      EXPECT_EQ(outcome->done, was_done) << "Done ran inside CancelPull";
      ASSERT_TRUE(world.Finish(outcome));
      if (!was_done && outcome->status.code() == absl::StatusCode::kCancelled) {
        ++cancelled;
        EXPECT_LT(outcome->done_at - at, Milliseconds(400));
      } else {
        EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
      }
      ExpectPullWorks(world, puller, owner);
    }
    EXPECT_GE(cancelled, 9);
    world.ExpectClean();
    EXPECT_EQ(puller.endpoint->counters().connections_opened, 1u) << "a cancelled pull cost the connection";
    EXPECT_EQ(owner.endpoint->counters().protocol_errors + puller.endpoint->counters().protocol_errors, 0u);
  }
}

TEST_P(FailureTest, ADeadlineIsSafeAtAnyMoment) {
  World world(SlowWorld());
  Node& owner = AddNode(world);
  Node& puller = AddNode(world);
  ExpectPullWorks(world, puller, owner);
  const base::ObjectId id = owner.AddObject(kLarge);
  for (Duration moment : kMoments) {
    PullRequest request = puller.Request(owner, id, GetParam());
    request.deadline = moment;
    const base::Time start = puller.loop.Now();
    auto outcome = puller.Pull(request);
    ASSERT_TRUE(world.Finish(outcome));
    if (moment < Milliseconds(66)) {
      EXPECT_EQ(outcome->status.code(), absl::StatusCode::kDeadlineExceeded) << moment.microseconds();
      EXPECT_LT(outcome->done_at - start, moment + Milliseconds(400));
    } else {
      EXPECT_TRUE(outcome->status.ok() || outcome->status.code() == absl::StatusCode::kDeadlineExceeded);
    }
  }
  ExpectPullWorks(world, puller, owner);
  world.ExpectClean();
}

TEST_P(FailureTest, APeerThatVanishesFailsItsTransfersSoon) {
  for (bool owner_vanishes : {true, false}) {
    for (Duration moment : kMoments) {
      World world(SlowWorld());
      Node& owner = AddNode(world);
      Node& puller = AddNode(world);
      ExpectPullWorks(world, puller, owner);
      auto outcome = puller.Pull(owner, owner.AddObject(kLarge), GetParam());
      world.RunFor(moment);
      const verbs::Address gone[] = {owner_vanishes ? owner.address : puller.address};
      world.network->Partition(gone);
      ASSERT_TRUE(world.Finish(outcome, Seconds(6))) << moment.microseconds() << " us";
      if (outcome->status.ok()) {
        EXPECT_TRUE(outcome->right);
      } else {
        EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
      }
      // The other side notices as well, though nobody tells it.
      EXPECT_TRUE(world.RunUntil([&] { return owner.source.pins() == 0; }, Seconds(6)))
          << moment.microseconds() << " us";
      world.network->Heal();
      ExpectPullWorks(world, puller, owner);
      world.ExpectClean();
    }
  }
}

TEST_P(FailureTest, AnOwnerThatEndsFailsItsTransfersAtOnce) {
  for (Duration moment : kMoments) {
    World world(SlowWorld());
    Node& owner = AddNode(world);
    Node& puller = AddNode(world);
    ExpectPullWorks(world, puller, owner);
    auto outcome = puller.Pull(owner, owner.AddObject(kLarge), GetParam());
    world.RunFor(moment);
    owner.DropEndpoint();
    EXPECT_EQ(owner.source.pins(), 0u);
    ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
    world.RunFor(Milliseconds(1));
    if (!outcome->status.ok()) {
      EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
    }
    owner.Reopen();
    ExpectPullWorks(world, puller, owner);
    world.ExpectClean();
  }
}

TEST_P(FailureTest, APullerThatEndsGivesBackThePins) {
  for (Duration moment : kMoments) {
    World world(SlowWorld());
    Node& owner = AddNode(world);
    Node& puller = AddNode(world);
    ExpectPullWorks(world, puller, owner);
    auto outcome = puller.Pull(owner, owner.AddObject(kLarge), GetParam());
    world.RunFor(moment);
    const bool was_done = outcome->done;
    puller.DropEndpoint();
    EXPECT_TRUE(outcome->dropped) << "the sink goes with its endpoint";
    EXPECT_EQ(outcome->done, was_done) << "and hears nothing more";
    EXPECT_TRUE(world.RunUntil([&] { return owner.source.pins() == 0; }, Seconds(1)));
    puller.Reopen();
    ExpectPullWorks(world, puller, owner);
    world.ExpectClean();
  }
}

TEST_P(FailureTest, AnOwnerThatTakesTooLongToPinFailsThePull) {
  World world;
  Node& owner = AddNode(world);
  Node& puller = AddNode(world);
  owner.source.SetDelay(Seconds(10));
  PullRequest request = puller.Request(owner, owner.AddObject(1000), GetParam());
  request.deadline = Seconds(2);
  auto outcome = puller.Pull(request);
  ASSERT_TRUE(world.Finish(outcome, Seconds(3)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kDeadlineExceeded) << outcome->status;
  EXPECT_TRUE(world.RunUntil([&] { return owner.source.pins() == 0; }, Seconds(2)));
  owner.source.SetDelay(Duration());
  ExpectPullWorks(world, puller, owner);
  world.ExpectClean();
  EXPECT_EQ(puller.endpoint->counters().connections_opened, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, FailureTest, ::testing::Values(Protocol::kEager, Protocol::kRead, Protocol::kWrite),
                         NameOfFailure);

TEST(ConnectTest, AnAbsentPeerIsUnavailable) {
  World world;
  Node& puller = world.Add();
  PullRequest request;
  request.owner = *verbs::Address::Parse("10.0.0.200:7000");
  auto outcome = puller.Pull(request);
  ASSERT_TRUE(world.Finish(outcome, Seconds(10)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
  world.ExpectClean();
}

TEST(ConnectTest, APeerThatDoesNotListenIsUnavailableAtOnce) {
  World world;
  Node& puller = world.Add();
  Node& other = world.Add();
  PullRequest request;
  request.owner = other.service;
  request.owner.port = 9;
  auto outcome = puller.Pull(request);
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
  world.ExpectClean();
}

TEST(ConnectTest, APullMayBeCancelledWhileConnecting) {
  World world;
  Node& puller = world.Add();
  PullRequest request;
  request.owner = *verbs::Address::Parse("10.0.0.200:7000");
  auto outcome = puller.Pull(request);
  world.RunFor(Milliseconds(10));
  puller.endpoint->CancelPull(outcome->pull);
  EXPECT_FALSE(outcome->done);
  ASSERT_TRUE(world.Finish(outcome, Milliseconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kCancelled);
  world.ExpectClean();
}

TEST(ConnectTest, ADeviceThatIsRemovedEndsItsConnections) {
  NodeOptions options;
  options.like_iwarp = true;
  World world(SlowWorld());
  Node& owner = world.Add();
  Node& puller = world.Add(options);
  auto outcome = puller.Pull(owner, owner.AddObject(kLarge), Protocol::kRead);
  world.RunFor(Milliseconds(10));
  Happen(*puller.device, {verbs::DeviceEvent::kPortDown, 0});
  Happen(*puller.device, {verbs::DeviceEvent::kQueuePairFatal, UINT32_MAX});  // of somebody else's
  world.RunFor(Milliseconds(1));
  EXPECT_FALSE(outcome->done);
  Happen(*puller.device, {verbs::DeviceEvent::kRemoved, 0});
  ASSERT_TRUE(world.Finish(outcome, Milliseconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
  world.ExpectClean();
}

TEST(ConnectTest, AnAskerThatHasGoneIsCountedAndHarmsNobody) {
  NodeOptions options;
  options.like_iwarp = true;
  World world;
  Node& owner = world.Add(options);
  Node& leaver = world.Add();
  Node& stayer = world.Add();
  const base::ObjectId id = owner.AddObject(1000);
  LoseAskers(*owner.device, 1);  // the queue pair of messages
  auto left = leaver.Pull(owner, id, Protocol::kAuto);
  ASSERT_TRUE(world.Finish(left));
  EXPECT_FALSE(left->status.ok());
  EXPECT_EQ(owner.endpoint->counters().requesters_gone, 1u);
  for (Node* puller : {&stayer, &leaver}) {
    auto outcome = puller->Pull(owner, id, Protocol::kAuto);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
  }
  EXPECT_EQ(owner.endpoint->counters().requesters_gone, 1u);
  EXPECT_EQ(owner.endpoint->counters().protocol_errors, 0u);
  world.RunFor(owner.options.endpoint.connect_deadline);  // what there was of the first connection ends
  world.ExpectClean();
}

TEST(ConnectTest, AnIdleConnectionIsClosedAndMadeAgain) {
  NodeOptions options;
  options.endpoint.idle_disconnect = Seconds(10);
  World world;
  Node& owner = world.Add(options);
  Node& puller = world.Add(options);
  const base::ObjectId id = owner.AddObject(1000);
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < 3; ++i) {
      auto outcome = puller.Pull(owner, id, Protocol::kAuto);
      ASSERT_TRUE(world.Finish(outcome));
      EXPECT_TRUE(outcome->status.ok()) << outcome->status;
      world.RunFor(Seconds(8));
    }
    EXPECT_EQ(puller.endpoint->counters().connections_opened, static_cast<uint64_t>(round));
    world.RunFor(Seconds(5));
  }
  EXPECT_EQ(puller.endpoint->counters().connections_lost, 0u);
  EXPECT_EQ(owner.endpoint->counters().connections_lost, 0u);
  world.ExpectClean();
  world.RunFor(Seconds(1000));
  const uint64_t before = world.time.events();
  world.RunFor(Seconds(1000));
  EXPECT_LE(world.time.events(), before + 1) << "something still ticks though nobody is connected";
}

}  // namespace
}  // namespace tokamak::transport::testing
