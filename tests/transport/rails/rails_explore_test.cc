// Transfers, cancellations, and rails that come and go: nothing may be wrong, and in the
// end everything finishes.
//
// TOKAMAK_SEED=n runs that seed only; TOKAMAK_SEEDS=n runs n seeds.
#include <cstdlib>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "tests/transport/rails_world.h"

namespace tokamak::transport::testing {
namespace {

using base::Microseconds;
using base::Milliseconds;
using base::Seconds;

constexpr uint64_t kMiB = 1 << 20;

// Transfers, cancellations, and rails that come and go; then all is mended and everything ends.
uint64_t Live(uint64_t seed) {
  base::Random random(seed);
  WorldOptions world_options = Fast(seed);
  if (random.Below(2) == 0) {
    world_options.link.loss = 0.01;
    world_options.link.reorder = 0.01;
    world_options.link.duplicate = 0.01;
    world_options.link.jitter = Microseconds(1);
  }
  World world(world_options);
  for (int i = 0; i < 2; ++i) {
    NodeOptions options = WithRails(2 + static_cast<uint32_t>(random.Below(2)));
    options.endpoint.bulk_queue_pairs = 1 + static_cast<uint32_t>(random.Below(3));
    options.endpoint.chunk_size = 4096 << random.Below(6);
    options.endpoint.slot_size = 512 << random.Below(6);
    options.endpoint.receive_slots = 8 << random.Below(5);
    options.endpoint.connect_deadline = Seconds(1);
    options.like_iwarp = random.Below(4) == 0;
    options.on_demand = random.Below(3) == 0;
    world.Add(options);
  }
  std::vector<std::shared_ptr<Outcome>> outcomes;
  std::vector<size_t> pullers;
  for (int step = 0; step < 120; ++step) {
    const size_t who = random.Below(2);
    Node& node = world.node(who);
    Node& other = world.node(1 - who);
    const auto rail = 1 + static_cast<uint32_t>(random.Below(2));
    const bool both_have_it = rail < node.rails.size() && rail < other.rails.size();
    switch (random.Below(10)) {
      default: {
        const uint64_t size = random.Below(uint64_t{1} << random.Below(22));
        PullRequest request = node.Request(other, other.AddObject(size), static_cast<Protocol>(1 + random.Below(3)));
        if (random.Below(8) == 0) request.deadline = Microseconds(static_cast<int64_t>(random.Below(3000)));
        outcomes.push_back(node.Pull(request));
        pullers.push_back(who);
        break;
      }
      case 0:
        if (outcomes.empty()) break;
        if (const size_t i = random.Below(outcomes.size()); true) {
          world.node(pullers[i]).endpoint->CancelPull(outcomes[i]->pull);
        }
        break;
      case 1:
        if (both_have_it) CutSomehow(world, node, other, rail, random.Below(3));
        break;
      case 2:
        if (both_have_it) world.MendRail(node, other, rail);
        break;
      case 3:
        world.RunFor(Milliseconds(static_cast<int64_t>(random.Below(30))));
        break;
      case 4:
        if (random.Below(4) == 0) world.RunFor(Seconds(static_cast<int64_t>(random.Below(12))));
        break;
    }
    world.RunFor(Microseconds(static_cast<int64_t>(random.Below(300))));
  }
  world.network->Heal();
  world.network->SetAllLinks(FastLink());
  for (size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_TRUE(world.RunUntil([&] { return outcomes[i]->dropped; }, Seconds(30))) << "seed " << seed << " pull " << i;
    const absl::Status& status = outcomes[i]->status;
    EXPECT_TRUE(!status.ok() || outcomes[i]->right) << "seed " << seed << " pull " << i;
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kCancelled ||
                status.code() == absl::StatusCode::kDeadlineExceeded)
        << "the primary rail was there all the time: seed " << seed << " pull " << i << ": " << status;
  }
  world.RunFor(Seconds(15));
  for (size_t who : {0, 1}) {
    Node& owner = world.node(1 - who);
    for (Protocol protocol : {Protocol::kRead, Protocol::kWrite}) {
      auto last = world.node(who).Pull(owner, owner.AddObject(kMiB), protocol);
      EXPECT_TRUE(world.Finish(last)) << "seed " << seed;
      EXPECT_TRUE(last->status.ok() && last->right) << "seed " << seed << ": " << last->status;
    }
    EXPECT_EQ(world.node(who).endpoint->counters().protocol_errors, 0u) << "honest peers, seed " << seed;
    EXPECT_EQ(world.node(who).endpoint->counters().connections_lost, 0u) << "seed " << seed;
  }
  world.ExpectClean();
  return world.trace.hash();
}

TEST(RailsExploreTest, NothingIsWrongAndInTheEndEverythingFinishes) {
  if (const char* seed = std::getenv("TOKAMAK_SEED")) {
    Live(std::strtoull(seed, nullptr, 10));
    return;
  }
  const char* seeds = std::getenv("TOKAMAK_SEEDS");
  const uint64_t last = seeds != nullptr ? std::strtoull(seeds, nullptr, 10) : 25;
  for (uint64_t seed = 1; seed <= last; ++seed) {
    Live(seed);
    if (HasFailure()) FAIL() << "first wrong: seed " << seed;
  }
}

TEST(RailsExploreTest, TheSameSeedGivesTheSameTrace) {
  for (uint64_t seed = 1; seed <= 2; ++seed) EXPECT_EQ(Live(seed), Live(seed)) << seed;
}

}  // namespace
}  // namespace tokamak::transport::testing
