// The plug of a NIC: what it takes, when it says that it takes more, and what arrives.
#include "sim/fabric/host_port.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/fabric/topology/generators.h"
#include "sim/time/sim_loop.h"

namespace tokamak::sim {
namespace {

using verbs::Address;
using verbs::soft::Packet;
using verbs::soft::PacketOpcode;
using verbs::soft::Port;

class HostPortTest : public testing::Test {
 protected:
  struct Nic {
    explicit Nic(Scheduler& scheduler) : loop(scheduler) {}
    SimLoop loop;
    std::vector<uint32_t> psns;
    std::vector<std::string> payloads;
    std::vector<base::Time> times;
    int ready = 0;
    std::unique_ptr<Port> port;
  };

  HostPortTest() { Build({}); }

  void Build(const FabricOptions& options) {
    a_.port.reset();
    b_.port.reset();
    fabric_ = *SwitchedFabric::Build(network_, Pair({}), options, nullptr);
    Plug("10.0.0.1", &a_);
    Plug("10.0.0.2", &b_);
  }

  void Plug(const char* address, Nic* nic) {
    auto port = fabric_->Open(nic->loop, *Address::Parse(address), Callbacks(nic));
    ASSERT_TRUE(port.ok()) << port.status();
    nic->port = *std::move(port);
  }

  static verbs::soft::PortCallbacks Callbacks(Nic* nic) {
    return {[nic](absl::Span<const Packet> packets) {
              for (const Packet& packet : packets) {
                nic->psns.push_back(packet.psn);
                nic->times.push_back(nic->loop.Now());
                std::string payload;
                for (uint32_t i = 0; i < packet.slices; ++i) {
                  const verbs::soft::PayloadSlice& slice = packet.payload[i];
                  payload += slice.data == nullptr
                                 ? std::string(slice.length, '?')
                                 : std::string(reinterpret_cast<const char*>(slice.data), slice.length);
                }
                nic->payloads.push_back(payload);
              }
            },
            [nic] { ++nic->ready; }};
  }

  static Packet Data(uint32_t psn, const char* to = "10.0.0.2") {
    Packet packet;
    packet.opcode = PacketOpcode::kSendOnly;
    packet.psn = psn;
    packet.peer = *Address::Parse(to);
    packet.slices = 1;
    packet.payload[0] = {reinterpret_cast<const uint8_t*>("payload."), 8};
    return packet;
  }
  static Packet Notification(uint32_t psn) {
    Packet packet;
    packet.opcode = PacketOpcode::kCongestionNotification;
    packet.psn = psn;
    packet.dscp = verbs::soft::kNotificationDscp;
    packet.peer = *Address::Parse("10.0.0.2");
    return packet;
  }
  size_t Send(const std::vector<Packet>& packets) { return a_.port->Send(packets); }

  void PauseA(uint8_t priority, uint16_t quanta) {
    PauseFrame frame;
    frame.enabled = static_cast<uint8_t>(1u << priority);
    frame.quanta[priority] = quanta;
    fabric_->interface_at(0).egress().OnPause(frame);
  }

  Scheduler scheduler_;
  SimLoop network_{scheduler_};
  std::unique_ptr<SwitchedFabric> fabric_;
  Nic a_{scheduler_};
  Nic b_{scheduler_};
};

TEST_F(HostPortTest, APortTakesOnePacketAndCallsWhenItTakesTheNext) {
  EXPECT_EQ(a_.port->room(), 1u);
  EXPECT_EQ(Send({Data(1), Data(2), Data(3)}), 1u);
  EXPECT_EQ(a_.port->room(), 0u);
  EXPECT_EQ(Send({Data(2)}), 0u);
  scheduler_.RunFor(base::Duration::Picoseconds(90 * 80 - 1));
  EXPECT_EQ(a_.ready, 0);
  scheduler_.RunFor(base::Duration::Picoseconds(1));
  EXPECT_EQ(a_.ready, 1);
  EXPECT_EQ(a_.port->room(), 1u);
  EXPECT_EQ(Send({Data(2)}), 1u);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(b_.psns, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ((b_.times[0] - base::Time()).picoseconds(), 90 * 80 + 1'000'000);
  EXPECT_EQ(a_.ready, 1) << "nobody asked";
}

TEST_F(HostPortTest, ANicThatSawNoRoomIsCalledWithoutHavingSent) {
  EXPECT_EQ(Send({Data(1)}), 1u);
  EXPECT_EQ(a_.port->room(), 0u);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(a_.ready, 1);
}

TEST_F(HostPortTest, AWaitingNicIsCalledAfterNotifications) {
  EXPECT_EQ(Send({Data(1)}), 1u);
  EXPECT_EQ(Send({Notification(7)}), 1u);
  EXPECT_EQ(a_.port->room(), 0u);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(a_.ready, 1);
  EXPECT_EQ(b_.psns, (std::vector<uint32_t>{1, 7}));
}

TEST_F(HostPortTest, APausedPriorityHoldsDataBackAndNotNotifications) {
  EXPECT_EQ(Send({Data(1)}), 1u);
  scheduler_.RunUntilIdle();
  PauseA(0, 100);
  EXPECT_EQ(a_.port->room(), 0u);
  EXPECT_EQ(Send({Data(2)}), 0u);
  EXPECT_EQ(Send({Notification(7), Notification(8)}), 2u);
  scheduler_.RunFor(base::Duration::Picoseconds(100 * 64 * 80 - 1));
  EXPECT_EQ(a_.ready, 0);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(a_.ready, 1);
  EXPECT_EQ(b_.psns, (std::vector<uint32_t>{1, 7, 8}));
  EXPECT_EQ(Send({Data(2)}), 1u);
  EXPECT_EQ(fabric_->interface_at(0).notifications_sent(), 2u);
  scheduler_.RunUntilIdle();
}

TEST_F(HostPortTest, APauseOfAnotherPriorityDoesNotMatter) {
  PauseA(3, 1000);
  EXPECT_EQ(a_.port->room(), 1u);
  EXPECT_EQ(Send({Data(1)}), 1u);
  scheduler_.RunUntilIdle();
  Packet other = Data(2);
  other.dscp = 26;
  PauseA(3, 1000);
  EXPECT_EQ(Send({other}), 0u);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(a_.ready, 1);
}

TEST_F(HostPortTest, PayloadIsCopiedAndPhantomBytesStayPhantom) {
  std::string first = "abc";
  Packet packet = Data(1);
  packet.slices = 4;
  packet.payload[0] = {reinterpret_cast<const uint8_t*>(first.data()), 3};
  packet.payload[1] = {reinterpret_cast<const uint8_t*>("de"), 2};
  packet.payload[2] = {nullptr, 4};
  packet.payload[3] = {reinterpret_cast<const uint8_t*>("fgh"), 3};
  EXPECT_EQ(Send({packet}), 1u);
  first = "xyz";
  scheduler_.RunUntilIdle();
  EXPECT_EQ(b_.payloads, (std::vector<std::string>{"abcde????fgh"}));
  EXPECT_EQ((b_.times[0] - base::Time()).picoseconds(), 94 * 80 + 1'000'000);
}

TEST_F(HostPortTest, AddressesBelongToHostsAndTakeOneNic) {
  EXPECT_EQ(fabric_->Open(a_.loop, *Address::Parse("10.0.0.9"), {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(fabric_->Open(a_.loop, *Address::Parse("10.0.0.1"), {}).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(a_.port->address().ToString(), "10.0.0.1:4791");
  EXPECT_EQ(a_.port->line_rate(), 100'000'000'000u);
  EXPECT_EQ(a_.port->max_mtu(), 4096u);
}

TEST_F(HostPortTest, PacketsForNobodyAreDropped) {
  b_.port.reset();
  EXPECT_EQ(Send({Data(1)}), 1u);
  scheduler_.RunUntilIdle();
  Plug("10.0.0.2:4800", &b_);
  EXPECT_EQ(Send({Data(2)}), 1u);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(Send({Data(3, "10.0.0.2:4800")}), 1u);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(b_.psns, (std::vector<uint32_t>{3}));
  HostInterface& interface = fabric_->interface_at(1);
  EXPECT_EQ(interface.counters().drops[static_cast<size_t>(DropReason::kNobody)], 2u);
  EXPECT_EQ(interface.delivered(), 1u);
  EXPECT_EQ(fabric_->frames_in_use(), 0u);
}

TEST_F(HostPortTest, ABusyNicHasAReceiveBuffer) {
  FabricOptions options;
  options.interfaces.receive_buffer = 1000;
  Build(options);
  EXPECT_EQ(b_.port->receive_window(), 500u);
  base::Timer busy = b_.loop.Post([this] { b_.loop.Spend(base::Milliseconds(1)); });
  for (uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(Send({Data(i)}), 1u);
    scheduler_.RunFor(base::Nanoseconds(100));
  }
  scheduler_.RunUntilIdle();
  EXPECT_EQ(b_.psns.size(), 11u) << "of 90 bytes each";
  EXPECT_EQ(fabric_->interface_at(1).counters().drops[static_cast<size_t>(DropReason::kReceiveBuffer)], 9u);
}

TEST_F(HostPortTest, ANicMayUnplugWhenItIsCalled) {
  b_.port.reset();
  Nic quick(scheduler_);
  int arrived = 0;
  quick.port = *fabric_->Open(quick.loop, *Address::Parse("10.0.0.2"),
                              {[&](absl::Span<const Packet>) {
                                 ++arrived;
                                 quick.port.reset();
                               },
                               [] {}});
  EXPECT_EQ(Send({Data(1)}), 1u);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(Send({Data(2)}), 1u);
  scheduler_.RunUntilIdle();
  EXPECT_EQ(arrived, 1);
}

}  // namespace
}  // namespace tokamak::sim
