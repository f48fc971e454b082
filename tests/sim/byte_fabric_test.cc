// Packets that pass through bytes over a simulated network arrive as on any wire.
#include "sim/network/byte_fabric.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "sim/network/sim_fabric.h"
#include "sim/time/sim_loop.h"
#include "tests/sim/plain_host.h"

namespace tokamak::sim {
namespace {

using verbs::soft::Packet;
using verbs::soft::PacketOpcode;
using verbs::soft::Port;

TEST(ByteFabricTest, PacketsPassThroughBytesOverAFaultyNetwork) {
  Scheduler scheduler;
  SimLoop network(scheduler);
  base::NoTrace trace;
  SimFabricOptions options;
  options.link.corrupt = 0.2;
  options.link.duplicate = 0.2;
  SimFabric inner(network, 3, options, trace);
  ByteFabric fabric(inner);
  PlainHost a(scheduler, fabric, 1);
  PlainHost b(scheduler, fabric, 2);
  for (uint32_t i = 0; i < 1000; ++i) a.Send(b, i, i);
  scheduler.RunUntilIdle();
  EXPECT_EQ(b.arrivals.size(), inner.counters().delivered);
  uint64_t corrupt = 0;
  for (const Arrival& arrival : b.arrivals) corrupt += arrival.corrupt;
  EXPECT_EQ(corrupt, inner.counters().corrupted);
  EXPECT_GT(corrupt, 100u);
}

TEST(ByteFabricTest, FieldsWithoutRoomInTheHeaderDoNotArrive) {
  Scheduler scheduler;
  SimLoop network(scheduler);
  base::NoTrace trace;
  SimFabric inner(network, 3, {}, trace);
  ByteFabric fabric(inner);
  PlainHost a(scheduler, fabric, 1);
  std::vector<Packet> received;
  SimLoop loop(scheduler);
  const std::unique_ptr<Port> port =
      fabric
          .Open(loop, MakeAddress(2),
                {[&](absl::Span<const Packet> packets) { received.assign(packets.begin(), packets.end()); }, [] {}})
          .value();
  Packet packet;
  packet.opcode = PacketOpcode::kAcknowledge;
  packet.syndrome = 0x1f;
  packet.msn = 5;
  packet.immediate = 77;
  packet.peer = MakeAddress(2);
  ASSERT_EQ(a.port->Send({&packet, 1}), 1u);
  scheduler.RunUntilIdle();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].syndrome, 0x1f);
  EXPECT_EQ(received[0].msn, 5u);
  EXPECT_EQ(received[0].immediate, 0u);
}

}  // namespace
}  // namespace tokamak::sim
