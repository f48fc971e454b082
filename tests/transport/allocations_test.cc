// A transport that is warm takes nothing from the heap for a small transfer, and neither
// does its NIC.
#include "tests/support/allocations.h"

#include <malloc.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "lib/base/log.h"
#include "sim/time/sim_time.h"
#include "tests/support/sanitized.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

constexpr uint64_t kSize = 64;
constexpr int kWarmUp = 400;  // pulls until all tables and rings have had their size, and each protocol its turn
constexpr int kPulls = 100;

// Needs no memory itself.
class ReadySink final : public Sink {
 public:
  ReadySink(absl::Span<uint8_t> memory, bool* done) : memory_(memory), done_(done) {}

  absl::Span<uint8_t> memory() const override { return memory_; }
  void Done(const absl::Status& status, const TransferReport& report) override {
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(report.size.total(), kSize);
    *done_ = true;
  }

 private:
  const absl::Span<uint8_t> memory_;
  bool* const done_;
};

class AllocationsTest : public ::testing::TestWithParam<Protocol> {
 protected:
  AllocationsTest() : world_(Loopback()), owner_(world_.Add()), puller_(world_.Add(Adaptive())) {}
  ~AllocationsTest() override { world_.ExpectClean(); }

  static WorldOptions Loopback() {
    WorldOptions options;
    options.loopback = true;
    return options;
  }

  // For pulls without a given protocol.
  static NodeOptions Adaptive() {
    NodeOptions options;
    options.endpoint.adaptive_policy = true;
    return options;
  }

  // Returns the allocations of one pull on the puller's loops; the sink is the test's own.
  int64_t Pull(const base::ObjectId& id, absl::Span<uint8_t> memory) {
    const PullRequest request = puller_.Request(owner_, id, GetParam());
    bool done = false;
    auto sink = std::make_unique<ReadySink>(memory, &done);
    const int64_t before = support::Allocations();
    puller_.endpoint->StartPull(request, std::move(sink));
    const int64_t started = support::Allocations() - before;
    const int64_t later = support::AllocationsOf(
        {&puller_.loop, &puller_.nic_loop}, dynamic_cast<sim::SimTime&>(world_.time).scheduler(), [&] { return done; });
    EXPECT_TRUE(done);
    return started + later;
  }

  World world_;
  Node& owner_;
  Node& puller_;
};

TEST_P(AllocationsTest, ASmallPullAllocatesNothing) {
  const base::ObjectId id = owner_.AddObject(kSize);
  const absl::Span<uint8_t> memory = puller_.arena.Take(kSize);
  for (int i = 0; i < kWarmUp; ++i) Pull(id, memory);
  int64_t taken = 0;
  const base::Counter& explored = puller_.endpoint->counters().adaptive_explored;
  uint64_t before = explored;
  int since = 2;  // pulls since one explored
  for (int i = 0; i < kPulls; ++i) {
    const int64_t one = Pull(id, memory);
    since = explored == before ? since + 1 : 0;
    before = explored;
    if (since >= 2) taken += one;  // by write it may take some; what that leaves to be done falls to the next one
  }
  EXPECT_EQ(taken, 0);
  EXPECT_TRUE(IsObject(id, memory));
}

INSTANTIATE_TEST_SUITE_P(ByProtocol, AllocationsTest,
                         ::testing::Values(Protocol::kEager, Protocol::kRead, Protocol::kAuto));

// Memory for an idle connection beside its slots: the transport's on one side, and its NIC's.
TEST(IdleConnectionTest, ItsMemoryIsBounded) {
  if (support::kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  constexpr int kPeers = 20;
  NodeOptions options;
  options.arena_size = 1 << 20;
  World world;
  Node& hub = world.Add(options);
  std::vector<Node*> nodes{&hub};
  while (nodes.size() <= kPeers) nodes.push_back(&world.Add(options));
  const auto taken = [&] {
    const struct mallinfo2 heap = mallinfo2();
    uint64_t bytes = heap.uordblks + heap.hblkhd;
    for (const Node* node : nodes) bytes -= node->endpoint->use().registered_bytes;
    return bytes;
  };
  const auto slots = [&] {
    uint64_t bytes = 0;
    for (const Node* node : nodes) bytes += node->endpoint->use().slot_bytes;
    return bytes;
  };
  const uint64_t before = taken();
  for (size_t i = 1; i < nodes.size(); ++i) {
    const auto outcome = hub.Pull(*nodes[i], nodes[i]->AddObject(100), Protocol::kEager);
    ASSERT_TRUE(world.Finish(outcome));
    ASSERT_TRUE(outcome->right) << outcome->status;
  }
  world.RunFor(base::Seconds(60));
  const uint64_t bookkeeping = (taken() - before) / (2 * kPeers);
  const uint64_t messages = slots() / (2 * kPeers);
  LOG(INFO) << "an idle connection takes " << messages << " bytes for messages, and " << bookkeeping
            << " for bookkeeping, its NIC's included";
  EXPECT_LE(messages, 64u << 10);
  EXPECT_LE(bookkeeping, 100u << 10);
}

}  // namespace
}  // namespace tokamak::transport::testing
