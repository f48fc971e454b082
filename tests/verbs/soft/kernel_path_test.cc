// A flow between two network namespaces over a cable of the kernel's (veth), which shapes it: a
// token bucket with a short queue.
#include <unistd.h>

#include <cstdlib>

#include "tests/os/own_network.h"
#include "tests/verbs/soft/path_fixture.h"

namespace tokamak::verbs::soft {
namespace {

// Users have no /usr/sbin in their PATH.
bool Shell(const std::string& command) { return std::system(("PATH=$PATH:/usr/sbin:/sbin; " + command).c_str()) == 0; }

// The kernel lets nothing out before a worker of its own has seen the carrier, which takes long on
// a busy machine.
bool AwaitCarrier(const char* interface) {
  return Shell(absl::StrCat("for i in $(seq 600); do case $(ip -o link show ", interface,
                            ") in *'state UP'*) exit 0;; esac; sleep 0.05; done; exit 1"));
}

TEST(KernelPathTest, AFlowThroughAShortQueueFillsItAndItsBytesAreRight) {
  constexpr uint64_t kBytesPerSecond = 200'000'000 / 8;
  const absl::Status network = tests::EnterOwnNetwork();
  if (absl::IsUnavailable(network)) GTEST_SKIP() << network.message();
  ASSERT_TRUE(network.ok()) << network;

  PathWorld world;
  std::string missing;
  const std::string main_thread = absl::StrCat(getpid());
  // The right end's NIC has a network of its own.
  const absl::Status right = world.Add("10.9.0.2", [&] {
    if (absl::Status s = tests::EnterOwnNetwork(); !s.ok()) {
      missing = s.ToString();
    } else if (!Shell("ip link add right mtu 9000 type veth peer name left mtu 9000 netns " + main_thread)) {
      missing = "veth";
    } else if (!Shell("ip address add 10.9.0.2/24 dev right && ip link set right up")) {
      missing = "an address";
    }
  });
  if (!missing.empty()) GTEST_SKIP() << "skipped: this kernel or user lacks " << missing;
  ASSERT_TRUE(right.ok()) << right;
  const absl::Status left = world.Add("10.9.0.1", [&] {
    ASSERT_TRUE(Shell("ip address add 10.9.0.1/24 dev left && ip link set left up"));
    ASSERT_TRUE(AwaitCarrier("left"));
    if (!Shell("tc qdisc add dev left root tbf rate 200mbit burst 32kb limit 256kb")) missing = "the tbf queue";
  });
  if (!missing.empty()) GTEST_SKIP() << "skipped: this kernel lacks " << missing;
  ASSERT_TRUE(left.ok()) << left;

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
