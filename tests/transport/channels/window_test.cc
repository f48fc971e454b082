// Windows of receives: small for an idle connection, large for a busy one, and back again.
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/transport/limits.h"
#include "lib/transport/messages/hello.h"
#include "tests/transport/posting_device.h"
#include "tests/transport/raw_peer.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Seconds;

// An idle connection's messages may take this much memory on either side.
constexpr uint64_t kIdleConnection = 64 << 10;

// After this long nothing is left of a burst.
constexpr base::Duration kRested = kWindowRest * 10;

class WindowTest : public ::testing::Test {
 protected:
  ~WindowTest() override { world_.ExpectClean(); }

  // Many small objects at once, each way.
  void Burst(Node& a, Node& b, int pulls = 64) {
    std::vector<std::shared_ptr<Outcome>> outcomes;
    for (int i = 0; i < pulls; ++i) {
      outcomes.push_back(a.Pull(b, b.AddObject(1000 + i), Protocol::kEager));
      outcomes.push_back(b.Pull(a, a.AddObject(2000 + i), Protocol::kEager));
    }
    for (const auto& outcome : outcomes) {
      ASSERT_TRUE(world_.Finish(outcome));
      ASSERT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
    }
  }
  // The window of one end of a connection.
  static uint64_t FirstWindow(const Node& node) {
    return uint64_t{node.options.endpoint.first_slots} * node.options.endpoint.slot_size;
  }

  World world_;
};

TEST_F(WindowTest, ABusyConnectionGetsALargeWindowAndGivesItUpWhenItIsIdle) {
  Node& a = world_.Add();
  Node& b = world_.Add();
  for (int round = 0; round < 3; ++round) {
    const uint64_t grown_before = b.endpoint->counters().windows_grown;
    Burst(a, b);
    EXPECT_GT(b.endpoint->counters().windows_grown, grown_before);
    EXPECT_GE(a.endpoint->use().slot_bytes, 5 * FirstWindow(a));
    EXPECT_GE(b.endpoint->use().slot_bytes, 5 * FirstWindow(b));
    world_.RunFor(kRested);
    EXPECT_EQ(a.endpoint->use().slot_bytes, 2 * FirstWindow(a)) << "one connection each way";
    EXPECT_EQ(b.endpoint->use().slot_bytes, 2 * FirstWindow(b));
  }
  EXPECT_EQ(a.endpoint->counters().connections_opened, 2u) << "none was lost for it";
  EXPECT_EQ(a.endpoint->counters().protocol_errors + b.endpoint->counters().protocol_errors, 0u);
}

TEST_F(WindowTest, OnceItHasGrownABurstWaitsNoMore) {
  Node& a = world_.Add();
  Node& b = world_.Add();
  for (int i = 0; i < 4; ++i) Burst(a, b);
  const uint64_t grown = b.endpoint->counters().windows_grown;
  const uint64_t stalls = b.endpoint->counters().credit_stalls;
  Burst(a, b, 16);
  EXPECT_EQ(b.endpoint->counters().windows_grown, grown);
  EXPECT_EQ(b.endpoint->counters().credit_stalls, stalls);
}

TEST_F(WindowTest, AnIdleConnectionIsClosedInTimeThoughItGaveSlotsUp) {
  NodeOptions options;
  options.endpoint.idle_disconnect = Seconds(60);
  Node& a = world_.Add(options);
  Node& b = world_.Add(options);
  Burst(a, b);
  world_.RunFor(Seconds(200));
  EXPECT_EQ(a.endpoint->use().slot_bytes, 0u);
  EXPECT_EQ(b.endpoint->use().slot_bytes, 0u);
  EXPECT_EQ(a.endpoint->use().completions, 0u);
  EXPECT_EQ(a.endpoint->counters().protocol_errors + b.endpoint->counters().protocol_errors, 0u);
}

TEST_F(WindowTest, OneAtATimeNeedsNoLargerWindow) {
  Node& a = world_.Add();
  Node& b = world_.Add();
  for (int i = 0; i < 100; ++i) {
    const auto outcome = a.Pull(b, b.AddObject(1000), Protocol::kEager);
    ASSERT_TRUE(world_.Finish(outcome));
    ASSERT_TRUE(outcome->right) << outcome->status;
  }
  EXPECT_EQ(a.endpoint->counters().windows_grown + b.endpoint->counters().windows_grown, 0u);
}

TEST_F(WindowTest, IdlePeersTakeLittleMemoryEach) {
  constexpr int kPeers = 50;
  Node& hub = world_.Add();
  std::vector<Node*> peers;
  for (int i = 0; i < kPeers; ++i) peers.push_back(&world_.Add());
  for (Node* peer : peers) Burst(hub, *peer, 8);
  world_.RunFor(kRested);
  const EndpointUse use = hub.endpoint->use();
  EXPECT_GT(use.slot_bytes, 0u);
  EXPECT_LE(use.slot_bytes / (2 * kPeers), kIdleConnection);

  // A message now and then moves both together.
  for (int round = 0; round < 8; ++round) {
    for (Node* peer : peers) Burst(hub, *peer, 1);
    world_.RunFor(kRested);
  }
  constexpr uint64_t kSlack = 4 << 20;  // a block that is partly used, and one that is kept
  EXPECT_LE(hub.endpoint->use().registered_bytes, 2 * kPeers * kIdleConnection + kSlack);
}

TEST_F(WindowTest, AWindowIsNoLargerThanItsOwnerAllows) {
  NodeOptions options;
  options.endpoint.receive_slots = 8;
  Node& a = world_.Add(options);
  Node& b = world_.Add(options);
  for (int i = 0; i < 4; ++i) Burst(a, b);
  // Both ends of two connections: receives, and as many sends whose completion is not known.
  EXPECT_LE(a.endpoint->use().slot_bytes, 2 * (8 + 8) * uint64_t{options.endpoint.slot_size});
}

TEST_F(WindowTest, AFixedWindowIsAWindowToo) {
  NodeOptions options;
  options.endpoint.first_slots = options.endpoint.receive_slots = 128;
  Node& a = world_.Add(options);
  Node& b = world_.Add(options);
  Burst(a, b);
  EXPECT_EQ(a.endpoint->counters().windows_grown + b.endpoint->counters().windows_grown, 0u);
}

TEST_F(WindowTest, APeerThatGivesUpSlotsThatItLacksIsDisconnected) {
  Node& node = world_.Add();
  RawPeer raw(world_, 9);
  raw.Connect(node.service);
  ASSERT_TRUE(world_.RunUntil([&] { return raw.up(); }, Seconds(1)));
  raw.Send(Plain(MessageKind::kRelease, 0));
  EXPECT_TRUE(world_.RunUntil([&] { return raw.disconnected(); }, Seconds(1)));
  EXPECT_EQ(node.endpoint->counters().protocol_errors, 1u);
}

TEST_F(WindowTest, APeerThatAlwaysAsksForMoreGetsNoMoreThanTheMaximum) {
  Node& node = world_.Add();
  RawPeer raw(world_, 9);
  raw.Connect(node.service);
  ASSERT_TRUE(world_.RunUntil([&] { return raw.up(); }, Seconds(1)));
  for (int i = 0; i < 20; ++i) {
    Header header;
    header.flags = kMoreSlots;
    raw.Send(header);
    world_.RunFor(base::Milliseconds(10));
  }
  EXPECT_EQ(node.endpoint->use().slot_bytes,
            uint64_t{node.options.endpoint.receive_slots} * node.options.endpoint.slot_size);
  uint64_t granted = 0;
  for (const RawPeer::Received& one : raw.received) granted += one.header.credits;
  EXPECT_LE(granted, node.options.endpoint.receive_slots - kMinFirstSlots + 20u);
}

TEST_F(WindowTest, WithoutMemoryAGreedyPeerIsNotServedAtEachMessage) {
  struct Memory {
    bool scarce = false;
    int refused = 0;
  };
  const auto memory = std::make_shared<Memory>();  // the device outlives this test
  NodeOptions options;
  options.endpoint.receive_slots = 512;  // which one block of slots has no room for
  options.wrap = [memory](std::unique_ptr<verbs::Device> device) {
    DeviceHooks hooks;
    hooks.on_register = [memory](absl::Span<uint8_t>, verbs::Access) {
      if (!memory->scarce) return absl::OkStatus();
      ++memory->refused;
      return absl::ResourceExhaustedError("no memory");
    };
    return WithHooks(std::move(device), std::move(hooks));
  };
  Node& node = world_.Add(options);
  RawPeer raw(world_, 9);
  raw.Connect(node.service);
  ASSERT_TRUE(world_.RunUntil([&] { return raw.up(); }, Seconds(1)));
  memory->scarce = true;
  const auto ask = [&] {
    Header header;
    header.flags = kMoreSlots;
    raw.Send(header);
    world_.RunFor(base::Milliseconds(10));
  };
  for (int i = 0; i < 20; ++i) ask();
  EXPECT_EQ(memory->refused, 1);
  const uint64_t grown = node.endpoint->counters().windows_grown;
  EXPECT_GT(grown, 0u);
  world_.RunFor(Seconds(1));
  ask();
  EXPECT_EQ(memory->refused, 2);
  EXPECT_EQ(node.endpoint->counters().windows_grown, grown) << "what has not grown is not counted";
  EXPECT_FALSE(raw.disconnected());
}

}  // namespace
}  // namespace tokamak::transport::testing
