// Faults from a seed, in front of any fabric.
#include "lib/verbs/soft/fabrics/faulty_fabric.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "sim/network/sim_fabric.h"
#include "sim/time/sim_loop.h"

namespace tokamak::verbs::soft {
namespace {

Address AddressOf(uint8_t host) {
  Address address;
  address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, host};
  address.port = kRoceUdpPort;
  return address;
}

struct Arrived {
  uint32_t psn;
  bool corrupt;
  base::Time time;
  std::vector<uint8_t> bytes;
  bool operator==(const Arrived& other) const { return psn == other.psn && corrupt == other.corrupt; }
};

// A port that takes a few packets at a time.
class NarrowFabric final : public Fabric {
 public:
  explicit NarrowFabric(base::EventLoop& loop) : loop_(loop) {}

  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop&, const Address&, PortCallbacks callbacks) override {
    on_ready_ = std::move(callbacks.on_ready);
    return std::make_unique<NarrowPort>(*this);
  }
  void MakeRoom() {
    room = 3;
    task_ = loop_.Post([this] { on_ready_(); });
  }

  size_t room = 3;
  std::vector<uint32_t> sent;

 private:
  class NarrowPort final : public Port {
   public:
    explicit NarrowPort(NarrowFabric& fabric) : fabric_(fabric) {}
    size_t Send(absl::Span<const Packet> packets) override {
      const size_t taken = std::min(packets.size(), fabric_.room);
      fabric_.room -= taken;
      for (const Packet& packet : packets.first(taken)) fabric_.sent.push_back(packet.psn);
      return taken;
    }
    const Address& address() const override { return address_; }
    uint32_t max_mtu() const override { return kMaxMtu; }
    uint64_t receive_window() const override { return 1 << 20; }

   private:
    NarrowFabric& fabric_;
    const Address address_ = AddressOf(1);
  };

  base::EventLoop& loop_;
  base::Timer task_;
  std::function<void()> on_ready_;
};

class FaultyFabricTest : public testing::Test {
 protected:
  // Sends packets with one byte each from a faulty port to one that is not, `batch` in each call,
  // and returns what arrived.
  std::vector<Arrived> Send(const FabricFaults& faults, uint32_t count, size_t batch, FaultCounters* counters) {
    sim::Scheduler scheduler;
    sim::SimLoop network(scheduler), loop(scheduler), far(scheduler);
    base::NoTrace trace;
    sim::SimFabric inner(network, 1, {}, trace);
    FaultyFabric fabric(inner, faults);
    std::vector<Arrived> arrived;
    const auto take = [&](absl::Span<const Packet> packets) {
      for (const Packet& packet : packets) {
        std::vector<uint8_t> bytes(packet.payload[0].data, packet.payload[0].data + packet.payload[0].length);
        arrived.push_back({packet.psn, packet.corrupt, far.Now(), std::move(bytes)});
      }
    };
    const auto receiver = inner.Open(far, AddressOf(2), {take, [] {}}).value();
    const auto sender = fabric.Open(loop, AddressOf(1), {[](absl::Span<const Packet>) {}, [] {}}).value();
    std::vector<uint8_t> bytes(batch);
    for (uint32_t psn = 0; psn < count;) {
      std::vector<Packet> packets(std::min<size_t>(batch, count - psn));
      for (size_t i = 0; i < packets.size(); ++i) {
        bytes[i] = static_cast<uint8_t>(psn);
        packets[i].opcode = PacketOpcode::kSendOnly;
        packets[i].psn = psn++;
        packets[i].peer = AddressOf(2);
        packets[i].slices = 1;
        packets[i].payload[0] = {&bytes[i], 1};
      }
      EXPECT_EQ(sender->Send(packets), packets.size());
      bytes.assign(batch, 0xff);  // it is not looked at after the call
    }
    scheduler.RunUntilIdle();
    *counters = fabric.counters();
    return arrived;
  }

  std::vector<Arrived> Send(const FabricFaults& faults, uint32_t count, size_t batch = 16) {
    FaultCounters counters;
    return Send(faults, count, batch, &counters);
  }
};

TEST_F(FaultyFabricTest, LosesAndDamagesTheGivenShares) {
  FabricFaults faults;
  faults.loss = 0.1;
  faults.corruption = 0.2;
  FaultCounters counters;
  const std::vector<Arrived> arrived = Send(faults, 10'000, 16, &counters);
  EXPECT_NEAR(static_cast<double>(counters.lost), 1000, 150);
  EXPECT_NEAR(static_cast<double>(counters.damaged), 1800, 200);
  EXPECT_EQ(arrived.size(), 10'000 - counters.lost);
  uint64_t damaged = 0;
  for (const Arrived& one : arrived) damaged += one.corrupt ? 1 : 0;
  EXPECT_EQ(damaged, counters.damaged);
}

TEST_F(FaultyFabricTest, ASeedHasTheSameFaultsHoweverPacketsAreBatched) {
  FabricFaults faults;
  faults.loss = faults.corruption = 0.3;
  faults.seed = 7;
  const std::vector<Arrived> one = Send(faults, 1000, 1);
  EXPECT_EQ(Send(faults, 1000, 64), one);
  faults.delay = base::Microseconds(50);
  EXPECT_EQ(Send(faults, 1000, 64), one);
  faults.seed = 8;
  EXPECT_NE(Send(faults, 1000, 1), one);
}

TEST_F(FaultyFabricTest, PacketsThatAreHeldBackKeepTheirContentAndOrder) {
  const std::vector<Arrived> prompt = Send({}, 200);
  FabricFaults faults;
  faults.delay = base::Milliseconds(5);
  const std::vector<Arrived> late = Send(faults, 200);
  ASSERT_EQ(late, prompt);
  for (size_t i = 0; i < late.size(); ++i) {
    EXPECT_EQ(late[i].bytes, std::vector<uint8_t>{static_cast<uint8_t>(i)});
    EXPECT_GE(late[i].time - prompt[i].time, faults.delay);
  }
}

TEST_F(FaultyFabricTest, NothingPassesEitherWayWhileItIsDown) {
  sim::Scheduler scheduler;
  sim::SimLoop network(scheduler), loop(scheduler), far(scheduler);
  base::NoTrace trace;
  sim::SimFabric inner(network, 1, {}, trace);
  FabricFaults faults;
  faults.delay = base::Microseconds(50);
  FaultyFabric fabric(inner, faults);
  std::vector<uint32_t> here, there;
  const auto noted_in = [](std::vector<uint32_t>* psns) {
    return [psns](absl::Span<const Packet> packets) {
      for (const Packet& packet : packets) psns->push_back(packet.psn);
    };
  };
  const auto own = fabric.Open(loop, AddressOf(1), {noted_in(&here), [] {}}).value();
  const auto others = inner.Open(far, AddressOf(2), {noted_in(&there), [] {}}).value();
  const auto exchange = [&](uint32_t psn) {
    Packet packet;
    packet.opcode = PacketOpcode::kSendOnly;
    packet.psn = psn;
    packet.peer = AddressOf(2);
    EXPECT_EQ(own->Send(absl::MakeConstSpan(&packet, 1)), 1u);
    packet.peer = AddressOf(1);
    EXPECT_EQ(others->Send(absl::MakeConstSpan(&packet, 1)), 1u);
  };
  exchange(1);
  scheduler.RunUntilIdle();
  exchange(2);
  fabric.set_up(false);  // while one is held back, and the other on its way
  exchange(3);
  scheduler.RunUntilIdle();
  EXPECT_EQ(fabric.counters().while_down, 4u);
  fabric.set_up(true);
  exchange(4);
  scheduler.RunUntilIdle();
  EXPECT_EQ(here, (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(there, (std::vector<uint32_t>{1, 4}));
}

TEST_F(FaultyFabricTest, APacketThatTheInnerFabricRefusesIsOfferedAgain) {
  sim::Scheduler scheduler;
  sim::SimLoop loop(scheduler);
  NarrowFabric narrow(loop);
  FabricFaults faults;
  faults.delay = base::Microseconds(1);
  FaultyFabric fabric(narrow, faults);
  const auto port = fabric.Open(loop, AddressOf(1), {[](absl::Span<const Packet>) {}, [] {}}).value();
  std::vector<Packet> packets(8);
  for (uint32_t i = 0; i < packets.size(); ++i) packets[i].psn = i;
  EXPECT_EQ(port->Send(packets), packets.size());
  scheduler.RunUntilIdle();
  EXPECT_EQ(narrow.sent.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    narrow.MakeRoom();
    scheduler.RunUntilIdle();
  }
  EXPECT_EQ(narrow.sent, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(FaultyFabricTest, APortThatHoldsBackItsMaximumIsBusyUntilSomeLeave) {
  sim::Scheduler scheduler;
  sim::SimLoop loop(scheduler);
  NarrowFabric narrow(loop);
  narrow.room = SIZE_MAX;
  FabricFaults faults;
  faults.delay = base::Microseconds(1);
  FaultyFabric fabric(narrow, faults);
  int ready = 0;
  const auto port = fabric.Open(loop, AddressOf(1), {[](absl::Span<const Packet>) {}, [&] { ++ready; }}).value();
  const std::vector<Packet> packets(FaultyFabric::kMaxHeldBack + 10);
  EXPECT_EQ(port->Send(packets), FaultyFabric::kMaxHeldBack);
  EXPECT_EQ(port->room(), 0u);
  scheduler.RunUntilIdle();
  EXPECT_EQ(ready, 1);
  EXPECT_EQ(port->room(), FaultyFabric::kMaxHeldBack);
}

}  // namespace
}  // namespace tokamak::verbs::soft
