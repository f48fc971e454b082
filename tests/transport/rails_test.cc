// Connections over several devices: they share the load, one that fails drops out, and
// transfers go on.
//
// TOKAMAK_SEEDS=n tries n cuts.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/transport/limits.h"
#include "tests/transport/limited_device.h"
#include "tests/transport/rails_world.h"

namespace tokamak::transport::testing {
namespace {

using base::Microseconds;
using base::Milliseconds;
using base::Seconds;

constexpr uint64_t kMiB = 1 << 20;

class RailsTest : public ::testing::Test {
 protected:
  explicit RailsTest(uint64_t seed = 1) : world(Fast(seed)) {}

  // Until all rails have joined.
  static void Warm(World& world, Node& puller, Node& owner, uint64_t rails) {
    ASSERT_TRUE(world.Finish(puller.Pull(owner, owner.AddObject(100), Protocol::kRead)));
    ASSERT_TRUE(world.RunUntil(
        [&] {
          return puller.endpoint->counters().rails_joined == rails && owner.endpoint->counters().rails_joined == rails;
        },
        Seconds(1)));
    world.RunFor(Milliseconds(1));  // the greeting
  }

  World world;
};

TEST_F(RailsTest, TwoRailsShareTheLoadEvenlyAndTakeHalfTheTime) {
  for (Protocol protocol : {Protocol::kRead, Protocol::kWrite}) {
    base::Duration elapsed[3];
    for (uint32_t rails : {1, 2}) {
      World w(Fast());
      Node& owner = w.Add(WithRails(rails));
      Node& puller = w.Add(WithRails(rails));
      Warm(w, puller, owner, rails - 1);
      const EndpointCounters& asks = (protocol == Protocol::kRead ? puller : owner).endpoint->counters();
      const uint64_t before = asks.rail_bytes[0];
      auto outcome = puller.Pull(owner, owner.AddObject(32 * kMiB, 100), protocol);
      ASSERT_TRUE(w.Finish(outcome));
      EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
      elapsed[rails] = outcome->report.elapsed;
      w.RunFor(Milliseconds(1));  // until the owner has the last acknowledgements
      EXPECT_EQ(asks.rail_bytes[0] - before + asks.rail_bytes[1], 32 * kMiB + 100);
      EXPECT_NEAR(static_cast<double>(asks.rail_bytes[0]), 32.0 * kMiB / rails, 256 * 1024 + 100);
      w.ExpectClean();
    }
    EXPECT_LT(elapsed[2].picoseconds(), elapsed[1].picoseconds() * 6 / 10) << ToString(protocol);
  }
}

TEST_F(RailsTest, SmallTransfersTakeTurns) {
  Node& owner = world.Add(WithRails(2));
  Node& puller = world.Add(WithRails(2));
  Warm(world, puller, owner, 1);
  const uint64_t warm = puller.endpoint->counters().rail_bytes[0];
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(world.Finish(puller.Pull(owner, owner.AddObject(200000), Protocol::kRead)));
    ASSERT_TRUE(world.Finish(puller.Pull(owner, owner.AddObject(200000), Protocol::kWrite)));
  }
  world.RunFor(Milliseconds(1));
  for (const Node* node : {&owner, &puller}) {
    EXPECT_EQ(node->endpoint->counters().rail_bytes[0] - (node == &puller ? warm : 0), 1000000u);
    EXPECT_EQ(node->endpoint->counters().rail_bytes[1], 1000000u);
  }
  world.ExpectClean();
}

TEST_F(RailsTest, NumbersOfRailsNeedNotBeEqual) {
  const uint32_t counts[] = {1, 2, 3};
  std::vector<Node*> nodes;
  for (uint32_t count : counts) nodes.push_back(&world.Add(WithRails(count)));
  for (Node* puller : nodes) {
    for (Node* owner : nodes) {
      if (puller == owner) continue;
      for (int round = 0; round < 2; ++round) {
        for (Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
          auto outcome = puller->Pull(*owner, owner->AddObject(3 * kMiB, 7), protocol);
          ASSERT_TRUE(world.Finish(outcome));
          EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
        }
      }
    }
  }
  EXPECT_EQ(nodes[0]->endpoint->counters().rails_joined, 0u);
  EXPECT_EQ(nodes[1]->endpoint->counters().rails_joined, 2u) << "as puller of the third, and as its owner";
  EXPECT_EQ(nodes[2]->endpoint->counters().rails_joined, 2u);
  world.ExpectClean();
}

TEST_F(RailsTest, RailsWorkOverLoopbackWithoutImmediatesAndWithKeysOfEachTransfer) {
  WorldOptions loopback;
  loopback.loopback = true;
  World w(loopback);
  NodeOptions options = WithRails(3);
  options.like_iwarp = true;
  options.on_demand = true;
  options.endpoint.bulk_queue_pairs = 3;
  options.endpoint.chunk_size = 4096;
  Node& owner = w.Add(options);
  Node& puller = w.Add(options);
  Warm(w, puller, owner, 2);
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (uint64_t size = 1; size < 200000; size = size * 3 + 1) {
    outcomes.push_back(puller.Pull(owner, owner.AddObject(size), Protocol::kRead));
    outcomes.push_back(puller.Pull(owner, owner.AddObject(size), Protocol::kWrite));
  }
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(w.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  }
  for (uint32_t rail = 0; rail < 3; ++rail) EXPECT_GT(owner.endpoint->counters().rail_bytes[rail], 0u);
  w.ExpectClean();
}

TEST_F(RailsTest, TooManyQueuePairsForAConnectionAreReported) {
  Node& node = world.Add(WithRails(2));
  std::vector<Rail> rails;
  for (const Node::RailParts& rail : node.rails) rails.push_back({*rail.device, *rail.domain, *rail.registration});
  EndpointOptions options;
  options.bulk_queue_pairs = 9;
  const auto opened = Endpoint::Open(node.loop, rails, node.source, base::Random(1), world.trace, options);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(opened.status().message().find("bulk_queue_pairs = 9, possible are 1 to 8"), absl::string_view::npos)
      << opened.status();
  EXPECT_EQ(Endpoint::Open(node.loop, absl::Span<const Rail>(), node.source, base::Random(1), world.trace, {})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

// ---- a rail is cut

TEST_F(RailsTest, ARailThatIsCutDropsOutAndEveryTransferEndsWithItsBytes) {
  uint64_t again = 0;
  const char* seeds = std::getenv("TOKAMAK_SEEDS");
  const uint64_t last_seed = seeds != nullptr ? std::strtoull(seeds, nullptr, 10) : 40;
  for (uint64_t seed = 1; seed <= last_seed; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Protocol protocol = seed % 2 == 0 ? Protocol::kRead : Protocol::kWrite;
    base::Random random(seed);
    World w(Fast(seed));
    NodeOptions options = WithRails(2);
    options.endpoint.bulk_queue_pairs = 1 + static_cast<uint32_t>(random.Below(2));
    options.like_iwarp = random.Below(3) == 0;
    options.on_demand = random.Below(3) == 0;
    Node& owner = w.Add(options);
    Node& puller = w.Add(options);
    Warm(w, puller, owner, 1);
    std::vector<std::shared_ptr<Outcome>> outcomes;
    uint64_t bytes = 0;
    for (int i = 0; i < 4; ++i) {
      const uint64_t size = 1 + random.Below(4 * kMiB);
      bytes += size;
      outcomes.push_back(puller.Pull(owner, owner.AddObject(size), protocol));
    }
    w.RunFor(Microseconds(static_cast<int64_t>(random.Below(700))));
    CutSomehow(w, puller, owner, 1, random.Below(3));
    for (const auto& outcome : outcomes) {
      ASSERT_TRUE(w.Finish(outcome, Seconds(3)));
      EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
    }
    // It may be noticed only when it is used next.
    auto next = puller.Pull(owner, owner.AddObject(2 * kMiB), protocol);
    ASSERT_TRUE(w.Finish(next, Seconds(3)));
    EXPECT_TRUE(next->status.ok() && next->right) << next->status;
    w.RunFor(Milliseconds(50));
    for (const Node* node : {&puller, &owner}) {
      const EndpointCounters& counters = node->endpoint->counters();
      EXPECT_EQ(counters.rails_lost, 1u);
      EXPECT_EQ(counters.connections_opened, 1u);
      EXPECT_EQ(counters.connections_lost, 0u);
      EXPECT_EQ(counters.protocol_errors, 0u);
      EXPECT_EQ(counters.late_messages, 0u);
    }
    EXPECT_EQ(owner.source.pins(), 0u) << "a serve waits for a rail that is gone";
    const EndpointCounters& asks = (protocol == Protocol::kRead ? puller : owner).endpoint->counters();
    // Bytes that were written and not acknowledged do not count.
    if (protocol == Protocol::kRead) {
      EXPECT_GE(asks.rail_bytes[0] + asks.rail_bytes[1], bytes + 2 * kMiB);
    }
    again += asks.rail_bytes[0] + asks.rail_bytes[1] > bytes + 2 * kMiB;

    // Mended, it is used again.
    w.network->Heal();
    ASSERT_TRUE(w.RunUntil([&] { return owner.endpoint->counters().rails_joined == 2; }, Seconds(20)));
    w.RunFor(Milliseconds(1));
    const uint64_t before = asks.rail_bytes[1];
    auto last = puller.Pull(owner, owner.AddObject(2 * kMiB), protocol);
    ASSERT_TRUE(w.Finish(last));
    EXPECT_TRUE(last->status.ok() && last->right) << last->status;
    w.RunFor(Milliseconds(1));
    EXPECT_GE(asks.rail_bytes[1], before + kMiB);
    w.ExpectClean();
    if (HasFailure()) FAIL() << "first wrong: seed " << seed;
  }
  EXPECT_GT(again, 5u) << "the cuts should meet writes whose bytes have to be written again";
}

// More than may be asked for at once, so that the one who drops a rail can name all that
// it waits for.
TEST_F(RailsTest, WritesThatWaitForTheirTurnOutliveACutRail) {
  NodeOptions options = WithRails(2);
  options.endpoint.bulk_queue_pairs = 2;
  options.endpoint.chunk_size = 4096;
  Node& owner = world.Add(options);
  Node& puller = world.Add(options);
  Warm(world, puller, owner, 1);
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 150; ++i) outcomes.push_back(puller.Pull(owner, owner.AddObject(50000), Protocol::kWrite));
  world.RunFor(Microseconds(200));
  world.CutRail(puller, owner, 1);
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(world.Finish(outcome, Seconds(3)));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  }
  EXPECT_EQ(puller.endpoint->counters().rails_lost, 1u);
  EXPECT_EQ(puller.endpoint->counters().connections_lost, 0u);
  world.ExpectClean();
}

TEST_F(RailsTest, APortThatGoesDownDropsOutAtOnce) {
  for (bool at_owner : {false, true}) {
    for (Protocol protocol : {Protocol::kRead, Protocol::kWrite}) {
      World w(Fast());
      NodeOptions options = WithRails(2);
      options.like_iwarp = true;
      Node& owner = w.Add(options);
      Node& puller = w.Add(options);
      Warm(w, puller, owner, 1);
      auto outcome = puller.Pull(owner, owner.AddObject(8 * kMiB), protocol);
      w.RunFor(Microseconds(100));
      w.CutRail(puller, owner, 1);
      Happen(*(at_owner ? owner : puller).rails[1].device, {verbs::DeviceEvent::kPortDown, 0});
      ASSERT_TRUE(w.Finish(outcome, Milliseconds(200)));
      EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
      EXPECT_EQ(puller.endpoint->counters().rails_lost, 1u);
      EXPECT_EQ(owner.endpoint->counters().rails_lost, 1u);
      w.ExpectClean();
    }
  }
}

TEST_F(RailsTest, ADeviceThatIsRemovedIsNotTriedAgain) {
  NodeOptions options = WithRails(2);
  options.like_iwarp = true;
  Node& owner = world.Add(options);
  Node& puller = world.Add(options);
  Warm(world, puller, owner, 1);
  Happen(*puller.rails[1].device, {verbs::DeviceEvent::kRemoved, 0});
  world.RunFor(Seconds(30));
  auto outcome = puller.Pull(owner, owner.AddObject(kMiB), Protocol::kWrite);
  ASSERT_TRUE(world.Finish(outcome));
  EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  EXPECT_EQ(puller.endpoint->counters().rails_joined, 1u);
  EXPECT_EQ(owner.endpoint->counters().connections_opened, 1u);
  world.ExpectClean();
}

TEST_F(RailsTest, AnUnreachableRailHoldsNothingUp) {
  Node& owner = world.Add(WithRails(2));
  Node& puller = world.Add(WithRails(2));
  world.CutRail(puller, owner, 1);
  for (Protocol protocol : {Protocol::kRead, Protocol::kWrite}) {
    auto outcome = puller.Pull(owner, owner.AddObject(kMiB), protocol);
    ASSERT_TRUE(world.Finish(outcome, Milliseconds(10)));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  }
  world.RunFor(Seconds(12));
  world.MendRail(puller, owner, 1);
  EXPECT_TRUE(world.RunUntil([&] { return puller.endpoint->counters().rails_joined == 1; }, Seconds(20)));
  EXPECT_EQ(puller.endpoint->counters().rails_lost, 0u);
  world.ExpectClean();
}

// A cancelled transfer must not cost the connection, though requests of it hang on a rail that
// has been cut.
TEST_F(RailsTest, CancellingAPullThatHangsOnACutRailCostsOnlyTheRail) {
  for (Protocol protocol : {Protocol::kRead, Protocol::kWrite}) {
    World w(Fast());
    NodeOptions options = WithRails(2);
    options.endpoint.reliability.ack_timeout = Seconds(1);  // so that nobody notices before the grace is over
    Node& owner = w.Add(options);
    Node& puller = w.Add(options);
    Warm(w, puller, owner, 1);
    auto outcome = puller.Pull(owner, owner.AddObject(8 * kMiB), protocol);
    w.RunFor(Microseconds(100));
    w.CutRail(puller, owner, 1);
    w.RunFor(Milliseconds(5));
    puller.endpoint->CancelPull(outcome->pull);
    ASSERT_TRUE(w.Finish(outcome, Seconds(2)));
    EXPECT_EQ(outcome->status.code(), absl::StatusCode::kCancelled);
    w.RunFor(Seconds(2));
    EXPECT_EQ(puller.endpoint->counters().connections_lost + owner.endpoint->counters().connections_lost, 0u);
    EXPECT_EQ(owner.source.pins(), 0u);
    auto next = puller.Pull(owner, owner.AddObject(kMiB), protocol);
    ASSERT_TRUE(w.Finish(next, Seconds(3)));
    EXPECT_TRUE(next->status.ok() && next->right) << next->status;
    w.ExpectClean();
  }
}

// ---- the primary rail is cut

TEST_F(RailsTest, WithoutItsPrimaryRailAConnectionEndsAndTheNextOneLivesOnAnotherRail) {
  for (Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    World w(Fast());
    Node& owner = w.Add(WithRails(2));
    Node& puller = w.Add(WithRails(2));
    Warm(w, puller, owner, 1);
    auto outcome = puller.Pull(owner, owner.AddObject(8 * kMiB), protocol);
    w.RunFor(Microseconds(100));
    w.CutRail(puller, owner, 0);
    ASSERT_TRUE(w.Finish(outcome, Seconds(10)));
    EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;

    // It is looked for where it was, once.
    auto next = puller.Pull(owner, owner.AddObject(kMiB), protocol);
    ASSERT_TRUE(w.Finish(next, Seconds(10)));
    EXPECT_EQ(next->status.code(), absl::StatusCode::kUnavailable) << next->status;
    for (int i = 0; i < 3; ++i) {
      auto later = puller.Pull(owner, owner.AddObject(kMiB), protocol);
      ASSERT_TRUE(w.Finish(later, Milliseconds(100)));
      EXPECT_TRUE(later->status.ok() && later->right) << later->status;
    }

    // Mended, the old primary rail joins as one like any other, when something is to be read or
    // written.
    w.MendRail(puller, owner, 0);
    const uint64_t joined = puller.endpoint->counters().rails_joined;
    ASSERT_TRUE(w.Finish(puller.Pull(owner, owner.AddObject(100), Protocol::kRead)));
    ASSERT_TRUE(w.RunUntil([&] { return puller.endpoint->counters().rails_joined > joined; }, Seconds(20)));
    w.RunFor(Milliseconds(1));
    auto last = puller.Pull(owner, owner.AddObject(4 * kMiB), protocol);
    ASSERT_TRUE(w.Finish(last));
    EXPECT_TRUE(last->status.ok() && last->right) << last->status;
    w.ExpectClean();
  }
}

}  // namespace
}  // namespace tokamak::transport::testing
