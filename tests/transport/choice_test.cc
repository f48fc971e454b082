// The side that chooses the protocol, and the bounds of transfers: policy, downgrade, limits,
// credits.
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

NodeOptions WithPolicy(const char* policy) {
  NodeOptions options;
  options.endpoint.policy = *Policy::Parse(policy);
  return options;
}

TEST(ChoiceTest, ThePullersPolicyRules) {
  World world;
  Node& owner = world.Add(WithPolicy("read"));
  Node& puller = world.Add(WithPolicy("eager:1000,read:10000,write"));
  for (auto [size, protocol] : {std::pair<uint64_t, Protocol>{1000, Protocol::kEager},
                                {1001, Protocol::kRead},
                                {10000, Protocol::kRead},
                                {10001, Protocol::kWrite}}) {
    auto outcome = puller.Pull(owner, owner.AddObject(size), Protocol::kAuto);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
    EXPECT_EQ(outcome->report.protocol, protocol) << size;
    EXPECT_FALSE(outcome->report.downgraded);
  }
  world.ExpectClean();
}

TEST(ChoiceTest, AGivenProtocolIsKept) {
  World world;
  Node& owner = world.Add(WithPolicy("eager"));
  Node& puller = world.Add(WithPolicy("eager"));
  for (Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    auto outcome = puller.Pull(owner, owner.AddObject(5000), protocol);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
    EXPECT_EQ(outcome->report.protocol, protocol);
  }
  world.ExpectClean();
}

TEST(ChoiceTest, AnOwnerThatFindsItSmallDowngradesToEager) {
  for (const char* policy : {"read", "write"}) {
    World world;
    Node& owner = world.Add(WithPolicy("eager:10000,read"));
    Node& puller = world.Add(WithPolicy(policy));
    auto small = puller.Pull(owner, owner.AddObject(9000, 1000), Protocol::kAuto);
    auto large = puller.Pull(owner, owner.AddObject(10000, 1), Protocol::kAuto);
    ASSERT_TRUE(world.Finish(small) && world.Finish(large));
    EXPECT_TRUE(small->status.ok() && small->right) << small->status;
    EXPECT_EQ(small->report.protocol, Protocol::kEager);
    EXPECT_TRUE(small->report.downgraded);
    EXPECT_FALSE(large->report.downgraded);
    EXPECT_EQ(puller.endpoint->counters().downgrades, 1u);
    EXPECT_EQ(owner.endpoint->counters().downgrades, 1u);
    auto written = puller.Pull(owner, owner.AddObject(100000), Protocol::kWrite);  // it still has its turn
    ASSERT_TRUE(world.Finish(written, base::Seconds(5)));
    EXPECT_EQ(written->report.protocol, Protocol::kWrite) << written->status;
    world.ExpectClean();
  }
}

TEST(ChoiceTest, AnOwnerThatCannotRegisterDowngradesToEager) {
  for (Protocol protocol : {Protocol::kRead, Protocol::kWrite}) {
    World world;
    Node& owner = world.Add();
    Node& puller = world.Add();
    std::vector<uint8_t> outside(200000);
    const base::ObjectId id = base::ObjectId::FromName("outside of the arena");
    owner.source.Add(id, absl::MakeSpan(outside), 0);
    owner.sizes[id] = {outside.size(), 0};
    auto outcome = puller.Pull(owner, id, protocol);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
    EXPECT_EQ(outcome->report.protocol, Protocol::kEager);
    EXPECT_TRUE(outcome->report.downgraded);
    world.ExpectClean();
  }
}

// No immediates: a write ends with a SEND. And a READ's sink has a key of its own.
TEST(ChoiceTest, DevicesLikeIwarpCarryEveryProtocol) {
  for (int limited_ones = 1; limited_ones <= 3; ++limited_ones) {
    NodeOptions plain, limited;
    plain.endpoint.bulk_queue_pairs = limited.endpoint.bulk_queue_pairs = 2;
    limited.like_iwarp = true;
    World world;
    Node& owner = world.Add((limited_ones & 1) != 0 ? limited : plain);
    Node& puller = world.Add((limited_ones & 2) != 0 ? limited : plain);
    for (Protocol protocol : {Protocol::kRead, Protocol::kWrite}) {
      for (uint64_t size : {0, 1, 1000000, 5000000}) {
        auto outcome = puller.Pull(owner, owner.AddObject(size), protocol);
        ASSERT_TRUE(world.Finish(outcome));
        EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
        EXPECT_EQ(outcome->report.protocol, protocol);
      }
    }
    world.ExpectClean();
  }
}

TEST(LimitsTest, PullsBeyondTheBoundAreRefused) {
  NodeOptions options;
  options.endpoint.max_transfers = 4;
  World world;
  Node& owner = world.Add();
  Node& puller = world.Add(options);
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 10; ++i) outcomes.push_back(puller.Pull(owner, owner.AddObject(100000), Protocol::kRead));
  for (size_t i = 0; i < outcomes.size(); ++i) {
    ASSERT_TRUE(world.Finish(outcomes[i]));
    EXPECT_EQ(outcomes[i]->status.code(), i < 4 ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted);
  }
  world.ExpectClean();
}

TEST(LimitsTest, PullsBeyondTheOwnersBoundAreRefused) {
  NodeOptions options;
  options.endpoint.max_transfers = 8;  // two for each peer
  World world;
  Node& owner = world.Add(options);
  Node& a = world.Add();
  Node& b = world.Add();
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 10; ++i) {
    outcomes.push_back(a.Pull(owner, owner.AddObject(500000), Protocol::kRead));
    outcomes.push_back(b.Pull(owner, owner.AddObject(500000), Protocol::kWrite));
  }
  int ok = 0;
  for (auto& outcome : outcomes) {
    ASSERT_TRUE(world.Finish(outcome));
    ok += outcome->status.ok();
    if (outcome->status.ok()) continue;
    EXPECT_EQ(outcome->status.code(), absl::StatusCode::kResourceExhausted) << outcome->status;
  }
  EXPECT_GE(ok, 4);
  EXPECT_LT(ok, 20);
  world.ExpectClean();
  auto again = a.Pull(owner, owner.AddObject(500000), Protocol::kRead);
  ASSERT_TRUE(world.Finish(again));
  EXPECT_TRUE(again->status.ok()) << again->status;
}

// Eight slots of 512 bytes for hundreds of transfers: messages wait for credits, and all arrive.
TEST(LimitsTest, FewCreditsAreEnough) {
  for (Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    NodeOptions options;
    options.endpoint.receive_slots = 8;
    options.endpoint.slot_size = 512;
    options.endpoint.max_transfers = 2048;  // for one peer a part of it
    World world;
    Node& a = world.Add(options);
    Node& b = world.Add(options);
    std::vector<std::shared_ptr<Outcome>> outcomes;
    for (int i = 0; i < 300; ++i) {
      outcomes.push_back(a.Pull(b, b.AddObject(i * 37), protocol));
      outcomes.push_back(b.Pull(a, a.AddObject(i * 41), protocol));
    }
    for (auto& outcome : outcomes) {
      ASSERT_TRUE(world.Finish(outcome));
      ASSERT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
    }
    EXPECT_GT(a.endpoint->counters().credit_stalls + b.endpoint->counters().credit_stalls, 0u);
    world.ExpectClean();
  }
}

TEST(LimitsTest, TheSidesMayHaveDifferentSlots) {
  NodeOptions small, large;
  small.endpoint.receive_slots = 8;
  small.endpoint.slot_size = 512;
  small.endpoint.chunk_size = 4096;
  small.endpoint.chunks_in_flight = 1;
  large.endpoint.receive_slots = 512;
  large.endpoint.slot_size = 256 * 1024;
  large.endpoint.bulk_queue_pairs = 4;
  World world;
  Node& a = world.Add(small);
  Node& b = world.Add(large);
  for (Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    auto one = a.Pull(b, b.AddObject(700000), protocol);
    auto other = b.Pull(a, a.AddObject(700000), protocol);
    ASSERT_TRUE(world.Finish(one) && world.Finish(other));
    EXPECT_TRUE(one->status.ok() && one->right) << one->status;
    EXPECT_TRUE(other->status.ok() && other->right) << other->status;
  }
  world.ExpectClean();
}

// More writes than a puller has receives for their notes.
TEST(LimitsTest, ManyWritesTakeTurns) {
  World world;
  Node& owner = world.Add();
  Node& puller = world.Add();
  owner.source.SetDelay(Milliseconds(1));
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 1000; ++i) outcomes.push_back(puller.Pull(owner, owner.AddObject(100 + i), Protocol::kWrite));
  world.RunFor(Milliseconds(2));
  for (int i = 0; i < 1000; i += 7) puller.endpoint->CancelPull(outcomes[i]->pull);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(world.Finish(outcomes[i]));
    ASSERT_TRUE(outcomes[i]->status.ok() || i % 7 == 0) << i << " " << outcomes[i]->status;
  }
  world.ExpectClean();
  EXPECT_EQ(puller.endpoint->counters().connections_opened, 1u);
}

TEST(LimitsTest, ImpossibleOptionsAreNamed) {
  World world;
  Node& node = world.Add();
  const auto refused = [&](auto change, const char* name) {
    EndpointOptions options;
    change(options);
    auto opened = Endpoint::Open(node.loop, *node.device, *node.domain, *node.registration, node.source,
                                 base::Random(1), world.trace, options);
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(opened.status().message().find(name), absl::string_view::npos) << opened.status();
  };
  refused([](EndpointOptions& o) { o.receive_slots = 7; }, "receive_slots");
  refused([](EndpointOptions& o) { o.slot_size = 100; }, "slot_size");
  refused([](EndpointOptions& o) { o.slot_size = 1 << 20; }, "slot_size");
  refused([](EndpointOptions& o) { o.bulk_queue_pairs = 0; }, "bulk_queue_pairs");
  refused([](EndpointOptions& o) { o.bulk_queue_pairs = 17; }, "bulk_queue_pairs");
  refused([](EndpointOptions& o) { o.chunk_size = 0; }, "chunk_size");
  refused([](EndpointOptions& o) { o.chunks_in_flight = 0; }, "chunks_in_flight");
  refused([](EndpointOptions& o) { o.max_transfers = 0; }, "max_transfers");
  refused([](EndpointOptions& o) { o.reliability.reads_outstanding = 0; }, "reads_outstanding");
}

TEST(LargeTest, SixtyFourMebibytesArrive) {
  for (Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    NodeOptions options;
    options.endpoint.bulk_queue_pairs = 2;
    WorldOptions fast;
    fast.link = FastLink();
    World world(fast);
    Node& owner = world.Add(options);
    Node& puller = world.Add(options);
    auto outcome = puller.Pull(owner, owner.AddObject(64 << 20), protocol);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
    world.ExpectClean();
  }
}

TEST(SelfTest, ANodeMayPullFromItself) {
  World world;
  Node& node = world.Add();
  for (Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    auto outcome = node.Pull(node, node.AddObject(100000), protocol);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  }
  world.ExpectClean();
}

TEST(SelfTest, ADoneMayStartTheNextPull) {
  World world;
  Node& owner = world.Add();
  Node& puller = world.Add();
  int left = 50;
  std::vector<std::shared_ptr<Outcome>> outcomes;
  SinkOptions sink;
  sink.on_done = [&](const Outcome& outcome) {
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    if (--left > 0) outcomes.push_back(puller.Pull(owner, owner.AddObject(left * 1000), Protocol::kAuto, sink));
  };
  outcomes.push_back(puller.Pull(owner, owner.AddObject(1), Protocol::kAuto, sink));
  EXPECT_TRUE(world.RunUntil([&] { return left == 0; }, Seconds(10)));
  world.ExpectClean();
}

}  // namespace
}  // namespace tokamak::transport::testing
