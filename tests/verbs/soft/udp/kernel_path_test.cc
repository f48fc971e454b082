// A flow between two network namespaces over a cable of the kernel's (veth), which shapes it: a
// token bucket with a short queue.
#include "gtest/gtest.h"
#include "tests/verbs/soft/udp/path_fixture.h"
#include "tests/verbs/soft/udp/veth_path.h"

namespace tokamak::verbs::soft {
namespace {

TEST(KernelPathTest, AFlowThroughAShortQueueFillsItAndItsBytesAreRight) {
  constexpr uint64_t kBytesPerSecond = 200'000'000 / 8;
  PathWorld world;
  const std::string skipped = OpenVethPath(world, {}, [] {
    return Shell("tc qdisc add dev left root tbf rate 200mbit burst 32kb limit 256kb") ? "" : "the tbf queue";
  });
  if (!skipped.empty()) GTEST_SKIP() << skipped;
  ASSERT_FALSE(HasFailure());

  PathEnd to(world, 0, 2);
  PathEnd from(world, 1, 1);
  to.Connect("10.9.0.1", from, 4096);
  from.Connect("10.9.0.2", to, 4096);
  PathFlow flow(from, to);
  const uint64_t most = 2 * kBytesPerSecond / PathEnd::kMemory * PathEnd::kMemory;
  const base::Time start = world.loop(0).Now();
  ASSERT_TRUE(world.Drive(
      [&] {
        flow.Go(most);
        return flow.acknowledged == most || testing::Test::HasFailure();
      },
      base::Seconds(60)))
      << world.Counters();
  const base::Duration took = world.loop(0).Now() - start;
  const QueuePairCounters sent = world.nic(1).counters().queue_pairs;
  SCOPED_TRACE(absl::StrCat(took.milliseconds(), " ms. ", world.Counters()));
  EXPECT_EQ(from.memory, to.memory);
  EXPECT_GT(sent.packets_retransmitted, 0u) << "the queue never overflowed";
  EXPECT_LE(sent.packets_sent, 2 * most / 4096);
  EXPECT_GE(static_cast<double>(most) / took.seconds(), 0.4 * kBytesPerSecond);
}

}  // namespace
}  // namespace tokamak::verbs::soft
