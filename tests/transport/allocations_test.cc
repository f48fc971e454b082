// A transport that is warm takes nothing from the heap for a small transfer, and neither
// does its NIC.
#include "tests/support/allocations.h"

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "sim/sim_time.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

constexpr uint64_t kSize = 64;
constexpr int kWarmUp = 100;  // pulls until all tables and rings have had their size
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
  AllocationsTest() : world_(Loopback()), owner_(world_.Add()), puller_(world_.Add()) {}
  ~AllocationsTest() override { world_.ExpectClean(); }

  static WorldOptions Loopback() {
    WorldOptions options;
    options.loopback = true;
    return options;
  }

  // What one pull takes on the puller's loops; the sink is the test's own.
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
  for (int i = 0; i < kPulls; ++i) taken += Pull(id, memory);
  EXPECT_EQ(taken, 0);
  EXPECT_TRUE(IsObject(id, memory));
}

INSTANTIATE_TEST_SUITE_P(ByProtocol, AllocationsTest, ::testing::Values(Protocol::kEager, Protocol::kRead));

}  // namespace
}  // namespace tokamak::transport::testing
