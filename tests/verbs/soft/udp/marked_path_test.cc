// DCQCN between two network namespaces over a cable of the kernel's (veth) that marks packets
// (ECN): marks are seen, answered, and slow the sender down.
//
// The marks are those of the red queue. A kernel without it marks one send in 32 by a program at
// the cable's end instead; both touch only packets that say they may be marked.
#include <linux/bpf.h>
#include <net/if.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "lib/os/file_descriptor.h"
#include "tests/verbs/soft/udp/path_fixture.h"
#include "tests/verbs/soft/udp/veth_path.h"

namespace tokamak::verbs::soft {
namespace {

bool MarkByQueue() {
  return Shell(
      "tc qdisc add dev left root handle 1: tbf rate 200mbit burst 32kb limit 2mb && tc qdisc add dev left parent 1:1 "
      "handle 10: red limit 2mb min 60kb max 180kb avpkt 4200 burst 30 probability 0.1 ecn bandwidth 200mbit "
      "2>/dev/null");
}

int Bpf(int command, bpf_attr* attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, attributes, sizeof(*attributes)));
}

// For kernels that attach programs to interfaces (Linux 6.6). Ends with the descriptor.
os::FileDescriptor MarkByProgram() {
  constexpr uint32_t kAttachOutbound = 47;  // BPF_TCX_EGRESS
  const bpf_insn program[] = {
      {BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0},
      {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_prandom_u32},
      {BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_0, 0, 0, 31},
      {BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 2, 0},
      {BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_6, 0, 0},
      {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_skb_ecn_set_ce},
      {BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, -1},  // whatever comes next
      {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
  };
  bpf_attr load;
  std::memset(&load, 0, sizeof(load));
  load.prog_type = BPF_PROG_TYPE_SCHED_CLS;
  load.insns = reinterpret_cast<uint64_t>(program);
  load.insn_cnt = sizeof(program) / sizeof(program[0]);
  load.license = reinterpret_cast<uint64_t>("MIT");
  const os::FileDescriptor loaded(Bpf(BPF_PROG_LOAD, &load));
  if (!loaded.valid()) return {};
  bpf_attr link;
  std::memset(&link, 0, sizeof(link));
  link.link_create.prog_fd = static_cast<uint32_t>(loaded.get());
  link.link_create.target_ifindex = if_nametoindex("left");
  link.link_create.attach_type = kAttachOutbound;
  return os::FileDescriptor(Bpf(BPF_LINK_CREATE, &link));
}

TEST(MarkedPathTest, MarksAreAnsweredAndSlowTheSenderDown) {
  DeviceOptions options;
  options.congestion = CongestionControl::kDcqcn;
  options.dcqcn.line_rate = 1'000'000'000;
  options.dcqcn.minimum_rate = 100'000'000;
  options.dcqcn.rate_timer = base::Milliseconds(5);  // slow enough to be seen
  options.dcqcn.catch_up = base::Microseconds(200);  // of timers on a busy machine
  options.window_packets = 64;

  PathWorld world;
  os::FileDescriptor program;
  const std::string skipped = OpenVethPath(world, options, [&]() -> std::string {
    if (MarkByQueue()) return "";
    program = MarkByProgram();
    return program.valid() ? "" : "the red queue, and programs at interfaces";
  });
  if (!skipped.empty()) GTEST_SKIP() << skipped;
  ASSERT_FALSE(HasFailure());

  PathEnd to(world, 0, 2);
  PathEnd from(world, 1, 1);
  to.Connect("10.9.0.1", from, 4096);
  from.Connect("10.9.0.2", to, 4096);
  PathFlow flow(from, to);
  constexpr uint64_t kMost = 8 * PathEnd::kMemory;
  uint64_t lowest = UINT64_MAX;
  ASSERT_TRUE(world.Drive(
      [&] {
        flow.Go(kMost);
        const uint64_t rate = world.nic(1).queue_pair_counters(from.queue_pair->number())->rate;
        if (rate != 0) lowest = std::min(lowest, rate);
        return flow.acknowledged == kMost || testing::Test::HasFailure();
      },
      base::Seconds(60)))
      << world.Counters();
  const QueuePairCounters sent = world.nic(1).counters().queue_pairs;
  const QueuePairCounters received = world.nic(0).counters().queue_pairs;
  SCOPED_TRACE(world.Counters());
  EXPECT_EQ(from.memory, to.memory);
  EXPECT_GT(received.marks_received, 0u);
  EXPECT_GT(received.notifications_sent, 0u);
  EXPECT_LE(received.notifications_sent, received.marks_received);
  EXPECT_GT(sent.notifications_received, 0u);
  EXPECT_LE(lowest, options.dcqcn.line_rate / 2);
  EXPECT_GE(lowest, options.dcqcn.minimum_rate);
  RecordProperty("marks", static_cast<int>(received.marks_received));
  RecordProperty("notifications", static_cast<int>(received.notifications_sent));
  RecordProperty("lowest_rate", static_cast<int>(lowest));
}

}  // namespace
}  // namespace tokamak::verbs::soft
