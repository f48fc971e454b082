// Marks, notifications and rates together: DCQCN in the NICs keeps the switch's queue short.
#include <algorithm>

#include "gtest/gtest.h"
#include "sim/fabric/topology/generators.h"
#include "tests/sim/fabric/nic_rig.h"

namespace tokamak::sim {
namespace {

struct Outcome {
  uint64_t most_queued;  // bytes towards the receiver, of the second half
  uint64_t pauses;
  uint64_t marked;
  uint64_t notifications;
  base::Duration time;
};

// Eight to one at 100 Gb/s, long enough for rates to settle.
Outcome RunIncast(verbs::soft::CongestionControl congestion) {
  constexpr uint32_t kSenders = 8;
  constexpr uint32_t kBytes = 8 << 20;
  GeneratorOptions options;
  options.switches.ecn = {40'000, 160'000, 0.2};
  options.switches.pfc.xoff = 100'000;
  options.switches.pfc.xon = 60'000;
  RigOptions rig_options;
  rig_options.memory = kBytes;
  rig_options.nic = FixedWindow(1024);
  rig_options.nic.congestion = congestion;
  NicRig rig(Star(options, kSenders + 1), rig_options);
  for (uint32_t i = 1; i <= kSenders; ++i) rig.Post(rig.Connect(i, 0), verbs::Opcode::kWrite, kBytes, i);
  const base::Time start = rig.scheduler().Now();
  rig.scheduler().RunFor(base::Milliseconds(2));
  Outcome outcome{};
  while (rig.completed().empty()) {
    rig.scheduler().RunFor(base::Microseconds(5));
    outcome.most_queued = std::max(outcome.most_queued, rig.fabric().switch_at(0).egress(0).queue(0).bytes());
  }
  rig.RunUntilCompleted(kSenders);
  outcome.time = rig.completed().back().time - start;
  outcome.pauses = rig.Pauses();
  outcome.marked = rig.fabric().switch_at(0).counters(0).priorities[0].marked;
  for (uint32_t i = 1; i <= kSenders; ++i) {
    outcome.notifications += rig.nic(i).device->counters().queue_pairs.notifications_received;
  }
  EXPECT_EQ(rig.fabric().interface_at(0).notifications_sent(), outcome.notifications);
  EXPECT_EQ(rig.Counters().packets_retransmitted, 0u);
  EXPECT_EQ(rig.Dropped(), 0u);
  rig.ExpectAllAccountedFor();
  return outcome;
}

TEST(CongestionTest, DcqcnKeepsTheQueueShortAndPausesAway) {
  const Outcome plain = RunIncast(verbs::soft::CongestionControl::kFixed);
  const Outcome dcqcn = RunIncast(verbs::soft::CongestionControl::kDcqcn);
  EXPECT_EQ(plain.marked, 0u) << "who does not react is not marked";
  EXPECT_GT(dcqcn.marked, 0u);
  EXPECT_GT(dcqcn.notifications, 0u);
  EXPECT_LT(dcqcn.most_queued * 2, plain.most_queued);
  EXPECT_LT(dcqcn.pauses * 5, plain.pauses);
  EXPECT_LT(dcqcn.time.picoseconds(), plain.time.picoseconds() * 3 / 2);
}

TEST(CongestionTest, NotificationsMayBeLost) {
  GeneratorOptions options;
  options.switches.ecn = {20'000, 20'000, 1};
  RigOptions rig_options;
  rig_options.nic.congestion = verbs::soft::CongestionControl::kDcqcn;
  NicRig rig(Star(options, 3), rig_options);
  LossOptions loss;
  loss.rate = 0.3;
  for (uint32_t cable = 1; cable <= 2; ++cable) rig.fabric().SetLoss(cable, 1, loss);
  verbs::ReliabilityOptions reliability;
  reliability.ack_timeout = base::Microseconds(100);
  for (uint32_t i = 1; i <= 2; ++i) rig.Post(rig.Connect(i, 0, 4096, reliability), verbs::Opcode::kWrite, 1 << 20, i);
  rig.RunUntilCompleted(2);
  uint64_t received = 0;
  for (uint32_t i = 1; i <= 2; ++i) received += rig.nic(i).device->counters().queue_pairs.notifications_received;
  EXPECT_LT(received, rig.fabric().interface_at(0).notifications_sent());
  EXPECT_TRUE(rig.arrived(1 << 20));
  rig.ExpectAllAccountedFor();
}

}  // namespace
}  // namespace tokamak::sim
