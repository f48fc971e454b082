// One node connected both ways to a thousand others, in virtual time: what a small get takes, and
// what an idle connection costs.
#include <malloc.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/transport/limits.h"
#include "sim/costs/costed_device.h"
#include "tests/support/sanitized.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Microseconds;
using base::Milliseconds;
using base::Nanoseconds;
using base::Seconds;

constexpr size_t kFew = 10, kMany = 1000;
constexpr uint64_t kSmall = 64;  // bytes

// An idle connection may take this much memory at either end: slots of messages, and beside them
// queue pairs and what is kept of them, with those of the software NIC.
constexpr uint64_t kMostSlots = 64 << 10;
constexpr uint64_t kMostBeside = 60 << 10;

// Costs of the order of a server's (sim/costs/presets.json).
sim::HostCosts Costs() {
  sim::HostCosts costs;
  costs.post = Nanoseconds(150);
  costs.completion = Nanoseconds(150);
  return costs;
}

// A hub, and peers that call it now and then, as those of a directory renew their leases.
class Star {
 public:
  static constexpr base::Duration kCallEvery = Seconds(3);

  Star() : hub_(AddNode()) {
    hub_.endpoint->SetCallHandler(
        Handler([](absl::Span<const uint8_t>, Reply reply) { reply(absl::Span<const uint8_t>()); }));
    object_ = hub_.AddObject(kSmall);
  }
  ~Star() {  // callers end before their nodes
    timers_.clear();
    calls_.clear();
  }

  // Until `count` nodes are there, not connected.
  void Add(size_t count) {
    while (peers_.size() < count) {
      peers_.push_back(&AddNode());
      objects_.push_back(peers_.back()->AddObject(kSmall));
      calls_.emplace_back();
      timers_.emplace_back();
    }
  }

  // One after the other, each way.
  void ConnectTo(size_t count) {
    Add(count);
    for (; connected_ < count; ++connected_) {
      TimeOfGet(connected_, /*by_hub=*/true);
      TimeOfGet(connected_, /*by_hub=*/false);
      CallHubLater(connected_, kCallEvery * static_cast<int64_t>(connected_ + 1) / static_cast<int64_t>(kMany));
    }
    EXPECT_EQ(hub_.endpoint->counters().connections_opened, 2 * count);
  }

  base::Duration TimeOfGet(size_t place, bool by_hub) {
    Node& peer = *peers_[place];
    Node& puller = by_hub ? hub_ : peer;
    Node& owner = by_hub ? peer : hub_;
    const base::Time began = world_.time.Now();
    const auto outcome = puller.Pull(owner, by_hub ? objects_[place] : object_, Protocol::kEager);
    EXPECT_TRUE(world_.Finish(outcome));
    EXPECT_TRUE(outcome->right) << outcome->status;
    return outcome->done_at - began;
  }

  // The median of gets each way, from and to peers all over the star.
  base::Duration UsualGet() {
    std::vector<base::Duration> times;
    for (size_t i = 0; i < 100; ++i) {
      const size_t place = i * 37 % connected_;
      times.push_back(TimeOfGet(place, i % 2 == 0));
      world_.RunFor(Microseconds(777));  // at any time of the others' calls
    }
    std::nth_element(times.begin(), times.begin() + 50, times.end());
    return times[50];
  }

  // Memory for messages, of all nodes.
  uint64_t registered() const {
    uint64_t sum = hub_.endpoint->use().registered_bytes;
    for (const Node* peer : peers_) sum += peer->endpoint->use().registered_bytes;
    return sum;
  }

  World& world() { return world_; }
  Node& hub() { return hub_; }
  uint64_t calls_answered() const { return calls_answered_; }
  uint64_t calls_failed() const { return calls_failed_; }

 private:
  Node& AddNode() {
    NodeOptions options;
    options.arena_size = 1 << 20;
    options.wrap = [this](std::unique_ptr<verbs::Device> device) {
      return sim::WithCosts(std::move(device), Costs(), [this] { return world_.time.running(); });
    };
    return world_.Add(options);
  }

  void CallHub(size_t place) {
    Node& peer = *peers_[place];
    calls_[place] = peer.endpoint->Call(
        hub_.service, {}, Seconds(2), [this](const auto& reply) { ++(reply.ok() ? calls_answered_ : calls_failed_); });
    CallHubLater(place, kCallEvery);
  }

  void CallHubLater(size_t place, base::Duration pause) {
    timers_[place] = peers_[place]->loop.RunAfter(pause, [this, place] { CallHub(place); });
  }

  World world_;
  Node& hub_;
  base::ObjectId object_;
  std::vector<Node*> peers_;
  size_t connected_ = 0;  // of these
  std::vector<base::ObjectId> objects_;
  std::vector<base::Pending> calls_;
  std::vector<base::Timer> timers_;
  uint64_t calls_answered_ = 0, calls_failed_ = 0;
};

TEST(ThousandPeersTest, ASmallGetTakesAsMuchAsWithTenPeers) {
  Star star;
  star.ConnectTo(kFew);
  const base::Duration with_few = star.UsualGet();
  star.ConnectTo(kMany);
  star.world().RunFor(Star::kCallEvery + Seconds(1));
  const base::Duration with_many = star.UsualGet();
  EXPECT_LE(with_many.picoseconds() * 10, with_few.picoseconds() * 12);
  EXPECT_GT(star.calls_answered(), kMany);
  EXPECT_EQ(star.calls_failed(), 0u);
  const EndpointCounters& counters = star.hub().endpoint->counters();
  EXPECT_EQ(counters.connections_lost + counters.protocol_errors + counters.requesters_gone, 0u);
  RecordProperty("picoseconds_with_few", static_cast<int>(with_few.picoseconds()));
  RecordProperty("picoseconds_with_many", static_cast<int>(with_many.picoseconds()));
}

TEST(ThousandPeersTest, AnIdleConnectionTakesLittleMemory) {
  if (support::kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  constexpr size_t kOthers = 200;
  Star star;
  star.Add(kFew + kOthers);
  star.ConnectTo(kFew);
  star.world().RunFor(kWindowRest * 2);
  const EndpointUse few = star.hub().endpoint->use();
  const auto heap_without_slots = [&star] { return mallinfo2().uordblks - star.registered(); };
  const size_t heap_before = heap_without_slots();
  star.ConnectTo(kFew + kOthers);
  star.world().RunFor(kWindowRest * 2);
  const EndpointUse many = star.hub().endpoint->use();
  const size_t heap = heap_without_slots() - heap_before;
  EXPECT_LE((many.slot_bytes - few.slot_bytes) / (2 * kOthers), kMostSlots);
  // Two connections for each of them, with both ends.
  EXPECT_LE(heap / (4 * kOthers), kMostBeside);
  RecordProperty("slot_bytes", static_cast<int>((many.slot_bytes - few.slot_bytes) / (2 * kOthers)));
  RecordProperty("heap_bytes", static_cast<int>(heap / (4 * kOthers)));
}

}  // namespace
}  // namespace tokamak::transport::testing
