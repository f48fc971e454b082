// A simulated network does what its options say, the same each time, and invents nothing.
#include "sim/network/sim_fabric.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "sim/time/sim_loop.h"
#include "tests/sim/plain_host.h"

namespace tokamak::sim {
namespace {

using verbs::Address;
using verbs::soft::Packet;
using verbs::soft::PacketOpcode;
using verbs::soft::Port;

class SimFabricTest : public testing::Test {
 protected:
  void Build(const LinkOptions& link, uint64_t seed = 1) {
    SimFabricOptions options;
    options.link = link;
    Build(options, seed);
  }
  void Build(const SimFabricOptions& options, uint64_t seed = 1) {
    fabric = std::make_unique<SimFabric>(network, seed, options, trace);
    for (uint8_t i = 0; i < 3; ++i) hosts.push_back(std::make_unique<PlainHost>(scheduler, *fabric, i));
  }
  PlainHost& host(size_t i) { return *hosts[i]; }

  void ExpectNothingDisappeared() {
    const SimFabricCounters& c = fabric->counters();
    EXPECT_EQ(c.sent + c.duplicated, c.delivered + c.lost + c.dropped_cut + c.dropped_queue + c.dropped_buffer +
                                         c.dropped_nobody + fabric->in_flight());
  }

  Scheduler scheduler;
  SimLoop network{scheduler};
  base::TraceHash trace;
  std::unique_ptr<SimFabric> fabric;
  std::vector<std::unique_ptr<PlainHost>> hosts;
};

TEST_F(SimFabricTest, APacketArrivesAfterLatencyAndItsTimeOnTheWire) {
  LinkOptions link;
  link.latency = base::Microseconds(3);
  link.picoseconds_per_byte = 80;  // 100 Gb/s
  Build(link);
  host(0).Send(host(1), 1, 1000);
  host(0).Send(host(1), 2, 1000);
  scheduler.RunUntilIdle();
  // 1,000 bytes of payload and 82 around them; the second packet leaves after the first.
  ASSERT_EQ(host(1).psns(), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ((host(1).arrivals[0].time - base::Time()).picoseconds(), 3'000'000 + 1082 * 80);
  EXPECT_EQ((host(1).arrivals[1].time - base::Time()).picoseconds(), 3'000'000 + 2 * 1082 * 80);
  EXPECT_EQ(host(1).arrivals[0].from, 0);
  EXPECT_TRUE(host(0).arrivals.empty());
  EXPECT_TRUE(host(2).arrivals.empty());
}

TEST_F(SimFabricTest, JitterKeepsTheOrderAndReorderingDoesNot) {
  LinkOptions link;
  link.jitter = base::Microseconds(50);
  Build(link);
  for (uint32_t i = 0; i < 500; ++i) host(0).Send(host(1), i);
  scheduler.RunUntilIdle();
  std::vector<uint32_t> psns = host(1).psns();
  EXPECT_EQ(psns.size(), 500u);
  EXPECT_TRUE(std::is_sorted(psns.begin(), psns.end()));

  link.reorder = 0.1;
  fabric->SetAllLinks(link);
  for (uint32_t i = 0; i < 500; ++i) {
    host(0).Send(host(2), i);
    scheduler.RunFor(base::Microseconds(1));
  }
  scheduler.RunUntilIdle();
  psns = host(2).psns();
  EXPECT_FALSE(std::is_sorted(psns.begin(), psns.end()));
  EXPECT_EQ(std::set<uint32_t>(psns.begin(), psns.end()).size(), 500u);
  ExpectNothingDisappeared();
}

TEST_F(SimFabricTest, FaultsComeAtTheGivenRates) {
  LinkOptions link;
  link.loss = 0.1;
  link.duplicate = 0.05;
  link.corrupt = 0.02;
  Build(link);
  constexpr int kPackets = 20000;
  for (uint32_t i = 0; i < kPackets; ++i) host(0).Send(host(1), i);
  scheduler.RunUntilIdle();
  const SimFabricCounters& counters = fabric->counters();
  const auto near = [](uint64_t count, double trials, double probability) {
    const double sigma = std::sqrt(trials * probability * (1 - probability));
    return std::abs(static_cast<double>(count) - trials * probability) < 5 * sigma;
  };
  EXPECT_TRUE(near(counters.lost, kPackets, 0.1)) << counters.lost;
  EXPECT_TRUE(near(counters.duplicated, kPackets * 0.9, 0.05)) << counters.duplicated;
  EXPECT_TRUE(near(counters.corrupted, kPackets * 0.9 * 1.05, 0.02)) << counters.corrupted;
  ExpectNothingDisappeared();
  EXPECT_EQ(fabric->in_flight(), 0u);

  uint64_t corrupt = 0;
  std::map<uint32_t, int> times;
  for (const Arrival& arrival : host(1).arrivals) {
    corrupt += arrival.corrupt;
    ++times[arrival.psn];
  }
  EXPECT_EQ(corrupt, counters.corrupted);
  for (const auto& [psn, count] : times) {
    EXPECT_LT(psn, static_cast<uint32_t>(kPackets)) << "nobody sent that";
    EXPECT_LE(count, 2);
  }
}

// Everything at once among three hosts; returns the trace's hash.
uint64_t RunStorm(uint64_t seed, bool extra_traffic) {
  Scheduler scheduler;
  SimLoop network(scheduler);
  base::TraceHash trace;
  base::NoTrace no_trace;
  SimFabricOptions options;
  options.link.jitter = base::Microseconds(5);
  options.link.picoseconds_per_byte = 80;
  options.link.loss = 0.1;
  options.link.duplicate = 0.1;
  options.link.corrupt = 0.1;
  options.link.reorder = 0.2;
  SimFabric fabric(network, seed, options, no_trace);
  std::vector<std::unique_ptr<PlainHost>> hosts;
  for (uint8_t i = 0; i < 3; ++i) hosts.push_back(std::make_unique<PlainHost>(scheduler, fabric, i));
  for (uint8_t i = 0; i < 2; ++i) hosts[i]->trace = &trace;
  for (uint32_t round = 0; round < 300; ++round) {
    hosts[0]->Send(*hosts[1], round, round % 200);
    hosts[1]->Send(*hosts[0], round, round % 300);
    if (extra_traffic) hosts[0]->Send(*hosts[2], round, 4096);
    scheduler.RunFor(base::Nanoseconds(700));
  }
  scheduler.RunUntilIdle();
  EXPECT_GT(trace.events(), 300u);
  return trace.hash();
}

TEST(SimFabricSeedTest, OneSeedGivesOneTraceAndAnotherSeedAnother) {
  EXPECT_EQ(RunStorm(7, false), RunStorm(7, false));
  EXPECT_NE(RunStorm(7, false), RunStorm(8, false));
}

TEST(SimFabricSeedTest, TrafficOnOneLinkDoesNotShiftWhatAnotherDraws) {
  EXPECT_EQ(RunStorm(7, false), RunStorm(7, true));
}

TEST_F(SimFabricTest, ACutIsOneWayAndLosesWhatIsOnTheWay) {
  Build(LinkOptions());
  host(0).Send(host(1), 1);
  fabric->Cut(host(0).address, host(1).address);
  host(0).Send(host(1), 2);
  host(1).Send(host(0), 3);
  scheduler.RunUntilIdle();
  EXPECT_TRUE(host(1).arrivals.empty());
  EXPECT_EQ(host(0).psns(), std::vector<uint32_t>{3});
  EXPECT_EQ(fabric->counters().dropped_cut, 2u);
  EXPECT_EQ(trace.events(), 2u);
  fabric->Mend(host(0).address, host(1).address);
  host(0).Send(host(1), 4);
  scheduler.RunUntilIdle();
  EXPECT_EQ(host(1).psns(), std::vector<uint32_t>{4});
  ExpectNothingDisappeared();
}

TEST_F(SimFabricTest, APartitionSeparatesItsSideUntilHealed) {
  Build(LinkOptions());
  const Address side[] = {host(0).address, host(1).address};
  fabric->Partition(side);
  host(0).Send(host(1), 1);
  host(0).Send(host(2), 2);
  host(2).Send(host(1), 3);
  scheduler.RunUntilIdle();
  EXPECT_EQ(host(1).psns(), std::vector<uint32_t>{1});
  EXPECT_TRUE(host(2).arrivals.empty());
  fabric->Heal();
  host(0).Send(host(2), 4);
  host(2).Send(host(1), 5);
  scheduler.RunUntilIdle();
  EXPECT_EQ(host(1).psns(), (std::vector<uint32_t>{1, 5}));
  EXPECT_EQ(host(2).psns(), std::vector<uint32_t>{4});
}

TEST_F(SimFabricTest, LinksHaveOptionsOfTheirOwn) {
  Build(LinkOptions());
  LinkOptions lossy;
  lossy.loss = 1;
  fabric->SetLink(host(0).address, host(1).address, lossy);
  host(0).Send(host(1), 1);
  host(0).Send(host(2), 2);
  host(1).Send(host(0), 3);
  scheduler.RunUntilIdle();
  EXPECT_TRUE(host(1).arrivals.empty());
  EXPECT_EQ(host(2).psns(), std::vector<uint32_t>{2});
  EXPECT_EQ(host(0).psns(), std::vector<uint32_t>{3});
  fabric->SetAllLinks(LinkOptions());
  host(0).Send(host(1), 4);
  scheduler.RunUntilIdle();
  EXPECT_EQ(host(1).psns(), std::vector<uint32_t>{4});
}

TEST_F(SimFabricTest, AFullLinkQueueDrops) {
  LinkOptions link;
  link.picoseconds_per_byte = 800;
  link.queue_bytes = 10000;
  Build(link);
  for (uint32_t i = 0; i < 100; ++i) host(0).Send(host(1), i, 916);  // 998 bytes on the wire
  scheduler.RunUntilIdle();
  EXPECT_EQ(host(1).arrivals.size(), 11u);
  EXPECT_EQ(fabric->counters().dropped_queue, 89u);
  ExpectNothingDisappeared();
}

TEST_F(SimFabricTest, ABusyReceiverGetsABatchAndItsBufferHasAnEnd) {
  SimFabricOptions options;
  options.receive_buffer = 10000;
  Build(options);
  host(1).loop.Spend(base::Microseconds(100));
  for (uint32_t i = 0; i < 20; ++i) host(0).Send(host(1), i, 916);
  scheduler.RunUntilIdle();
  EXPECT_EQ(host(1).arrivals.size(), 10u);
  EXPECT_EQ(host(1).batches, 1);
  EXPECT_EQ(fabric->counters().dropped_buffer, 10u);
  EXPECT_EQ(host(1).port->receive_window(), 5000u);
  ExpectNothingDisappeared();
}

TEST_F(SimFabricTest, ThePayloadIsCopiedDuringSendAndNoMemoryStaysNoMemory) {
  Build(LinkOptions());
  std::vector<uint32_t> lengths;
  host(1).port.reset();
  host(1).port = fabric
                     ->Open(host(1).loop, host(1).address,
                            {[&](absl::Span<const Packet> packets) {
                               for (uint32_t i = 0; i < packets[0].slices; ++i) {
                                 EXPECT_EQ(packets[0].payload[i].data == nullptr, i == 1);
                                 if (i == 0) {
                                   EXPECT_EQ(packets[0].payload[i].data[0], 'a');
                                 }
                                 lengths.push_back(packets[0].payload[i].length);
                               }
                             },
                             [] {}})
                     .value();
  uint8_t byte = 'a';
  Packet packet;
  packet.opcode = PacketOpcode::kSendOnly;
  packet.peer = host(1).address;
  packet.slices = 2;
  packet.payload[0] = {&byte, 1};
  packet.payload[1] = {nullptr, 4000};
  ASSERT_EQ(host(0).port->Send({&packet, 1}), 1u);
  byte = 'b';
  scheduler.RunUntilIdle();
  EXPECT_EQ(lengths, (std::vector<uint32_t>{1, 4000}));
}

TEST_F(SimFabricTest, OnlyARestartedPortReceivesPacketsOnTheWay) {
  Build(LinkOptions());
  host(0).Send(host(1), 1);
  host(1).port.reset();
  host(1).Plug(*fabric);
  scheduler.RunUntilIdle();
  EXPECT_EQ(host(1).psns(), std::vector<uint32_t>{1});
  host(0).Send(host(1), 2);
  host(1).port.reset();
  scheduler.RunUntilIdle();
  EXPECT_EQ(host(1).arrivals.size(), 1u);
  EXPECT_EQ(fabric->counters().dropped_nobody, 1u);
  ExpectNothingDisappeared();
}

TEST_F(SimFabricTest, AReceiverMayDropItsPortOrSendInTheMiddleOfABatch) {
  Build(LinkOptions());
  int batches = 0;
  host(1).port.reset();
  std::unique_ptr<Port> port = fabric
                                   ->Open(host(1).loop, host(1).address,
                                          {[&](absl::Span<const Packet> packets) {
                                             ++batches;
                                             Packet reply;
                                             reply.peer = packets[0].peer;
                                             for (int i = 0; i < 50; ++i) EXPECT_EQ(port->Send({&reply, 1}), 1u);
                                             port.reset();
                                             EXPECT_EQ(packets[1].psn, 2u);
                                           },
                                           [] {}})
                                   .value();
  host(0).Send(host(1), 1);
  host(0).Send(host(1), 2);
  scheduler.RunFor(base::Microseconds(1));
  host(0).Send(host(1), 3);
  scheduler.RunUntilIdle();
  EXPECT_EQ(batches, 1);
  EXPECT_EQ(host(0).arrivals.size(), 50u);
  ExpectNothingDisappeared();
}

TEST_F(SimFabricTest, AnAddressIsTakenOnce) {
  Build(LinkOptions());
  Address address = host(0).address;
  EXPECT_EQ(host(0).port->address().port, 4791);
  address.port = 4791;
  EXPECT_EQ(fabric->Open(host(0).loop, address, {}).status().code(), absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace tokamak::sim
