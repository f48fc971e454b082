// The UDP fabric between real sockets on this machine's loopback (in a sandbox, its own), all on
// one loop.
#include "lib/verbs/soft/udp/udp_fabric.h"

#include <netinet/udp.h>

#include "lib/base/bytes.h"
#include "tests/verbs/soft/udp/udp_fabric_fixture.h"

namespace tokamak::verbs::soft {
namespace {

TEST_F(UdpFabricTest, PacketsArriveWholeAndInOrder) {
  TestNic a(loop, "127.0.0.1");
  TestNic b(loop, "127.0.0.2");
  ExchangeRandomBatches(a, b);
  EXPECT_LT(a.counters().send_calls.value(), 200u);
}

TEST_F(UdpFabricTest, PacketsArriveWholeAndInOrderWithoutSegmentation) {
  UdpFabricOptions options;
  options.segment = false;
  TestNic a(loop, "127.0.0.1", options);
  TestNic b(loop, "127.0.0.2");
  ExchangeRandomBatches(a, b);
}

TEST_F(UdpFabricTest, PacketsArriveWholeAndInOrderOverIpv6AndOnOtherPorts) {
  TestNic a(loop, "[::1]");
  TestNic b(loop, "[::1]:4792");
  EXPECT_EQ(a.address().port, 4791);
  ExchangeRandomBatches(a, b);
}

TEST_F(UdpFabricTest, OneBatchMayGoToManyPeers) {
  TestNic a(loop, "127.0.0.1");
  std::vector<std::unique_ptr<TestNic>> peers;
  for (int i = 2; i < 6; ++i) peers.push_back(std::make_unique<TestNic>(loop, "127.0.0." + std::to_string(i)));
  const Bytes payload = RandomBytes(500);
  std::vector<Packet> packets;
  for (uint32_t i = 0; i < 1000; ++i) {
    packets.push_back(Make(PacketOpcode::kSendOnly, i, peers[random.Below(4)]->address(), payload));
    if (random.Chance(0.5)) packets.back().peer.port = 0;  // the same as 4791
  }
  ASSERT_EQ(a.port().Send(packets), packets.size());
  const auto arrived = [&] {
    size_t sum = 0;
    for (const auto& peer : peers) sum += peer->received().size();
    return sum;
  };
  ASSERT_TRUE(WaitFor([&] { return arrived() == packets.size(); }));
  for (const auto& peer : peers) {
    uint32_t last = 0;
    for (const Received& received : peer->received()) {
      EXPECT_TRUE(received.packet.psn > last || received.packet.psn == 0);
      last = received.packet.psn;
      EXPECT_EQ(packets[last].peer.ip, peer->address().ip);
      EXPECT_EQ(received.payload, payload);
    }
  }
}

TEST_F(UdpFabricTest, PacketsThatArriveTogetherAreHandedOverTogether) {
  TestNic a(loop, "127.0.0.1");
  TestNic b(loop, "127.0.0.2");
  const Bytes payload = RandomBytes(1024);
  const std::vector<Packet> packets(64, Make(PacketOpcode::kWriteMiddle, 1, b.address(), payload));
  ASSERT_EQ(a.port().Send(packets), packets.size());
  ASSERT_TRUE(WaitFor([&] { return b.received().size() == packets.size(); }));
  EXPECT_LE(b.batches(), 2);
  EXPECT_EQ(a.counters().send_calls.value(), 1u);
}

void ExpectTrafficClasses(TestNic& from, TestNic& to, const std::function<bool(size_t)>& await) {
  const Bytes payload(300, 7);
  std::vector<Packet> packets;
  for (uint32_t i = 0; i < 200; ++i) {
    Packet packet;
    packet.opcode = PacketOpcode::kSendOnly;
    packet.psn = i;
    packet.peer = to.address();
    packet.payload[packet.slices++] = {payload.data(), static_cast<uint32_t>(payload.size())};
    packet.ecn = static_cast<Ecn>(i / 30 % 4);  // alone, and beside UDP_SEGMENT
    packet.dscp = static_cast<uint8_t>(i < 100 ? 0 : i / 7 % 64);
    packets.push_back(packet);
  }
  ASSERT_EQ(from.port().Send(packets), packets.size());
  ASSERT_TRUE(await(packets.size()));
  for (uint32_t i = 0; i < packets.size(); ++i) {
    const Packet& packet = to.received()[i].packet;
    ASSERT_EQ(packet.psn, i);
    EXPECT_EQ(packet.ecn, packets[i].ecn) << i;
    EXPECT_EQ(packet.dscp, packets[i].dscp) << i;
  }
}

TEST_F(UdpFabricTest, DscpAndEcnArrive) {
  for (const char* last : {"127.0.0.2", "[::1]:4792"}) {
    TestNic from(loop, last[0] == '[' ? "[::1]" : "127.0.0.1");
    TestNic to(loop, last);
    ExpectTrafficClasses(from, to,
                         [&](size_t count) { return WaitFor([&] { return to.received().size() == count; }); });
  }
}

TEST_F(UdpFabricTest, BytesOfPhantomRegionsAreSentAsZeros) {
  TestNic a(loop, "127.0.0.1");
  TestNic b(loop, "127.0.0.2");
  Packet packet = Make(PacketOpcode::kSendOnly, 1, b.address(), {});
  packet.payload[packet.slices++] = {nullptr, 1000};
  ASSERT_EQ(a.port().Send({&packet, 1}), 1u);
  ASSERT_TRUE(WaitFor([&] { return b.received().size() == 1; }));
  EXPECT_EQ(b.received()[0].payload, Bytes(1000));
}

TEST_F(UdpFabricTest, ADamagedPacketIsCountedAndDropped) {
  TestNic a(loop, "127.0.0.1");
  TestNic b(loop, "127.0.0.2");
  const Bytes payload = RandomBytes(1000);
  std::vector<Packet> packets(10, Make(PacketOpcode::kWriteMiddle, 1, b.address(), payload));
  packets[3].corrupt = true;
  packets[9].corrupt = true;
  ASSERT_EQ(a.port().Send(packets), packets.size());
  ASSERT_TRUE(WaitFor([&] { return b.received().size() == 8; }));
  Settle();
  EXPECT_EQ(b.received().size(), 8u);
  EXPECT_EQ(b.counters().Dropped(UdpDrop::kIcrc), 2u);
}

TEST_F(UdpFabricTest, AnyIdentificationIsFoundAndSurprisesAreCounted) {
  TestNic nic(loop, "127.0.0.1");
  PlainSocket peer("127.0.0.3:49152");
  const IcrcFlow flow(peer.local(), nic.address());
  const Bytes payload = RandomBytes(1024);
  const auto send = [&](uint32_t psn, uint16_t identification) {
    Bytes datagram(kMaxDatagram);
    const Packet packet = Make(PacketOpcode::kSendOnly, psn, nic.address(), payload);
    datagram.resize(EncodeDatagram(packet, flow, identification, datagram.data()));
    peer.Send(nic.address(), datagram);
  };
  // The kernel's Soft-RoCE counts up, from anywhere, and has other peers.
  for (uint32_t i = 0; i < 100; ++i) send(i, static_cast<uint16_t>(0xfff0 + 3 * i));
  ASSERT_TRUE(WaitFor([&] { return nic.received().size() == 100; }));
  EXPECT_EQ(nic.counters().identifications_unexpected.value(), 1u);
  EXPECT_EQ(nic.received()[99].payload, payload);
  for (uint32_t i = 0; i < 100; ++i) send(i, static_cast<uint16_t>(0x1000 * (i + 1) + 0x100));
  ASSERT_TRUE(WaitFor([&] { return nic.received().size() == 200; }));
  EXPECT_EQ(nic.counters().identifications_unexpected.value(), 101u);
}

TEST_F(UdpFabricTest, APeerIsAnsweredOnItsListeningPortNotOnTheOneItsFlowsComeFrom) {
  TestNic nic(loop, "127.0.0.1");
  PlainSocket kernel("127.0.0.3:63920");
  PlainSocket ours("127.0.0.3:4792");
  for (PlainSocket* peer : {&kernel, &ours}) {
    const IcrcFlow flow(peer->local(), nic.address());
    Bytes datagram(kMaxDatagram);
    datagram.resize(EncodeDatagram(Packet(), flow, 0, datagram.data()));
    peer->Send(nic.address(), datagram);
  }
  ASSERT_TRUE(WaitFor([&] { return nic.received().size() == 2; }));
  EXPECT_EQ(nic.received()[0].packet.peer, Parse("127.0.0.3:4791"));
  EXPECT_EQ(nic.received()[0].packet.source_port, 63920);
  EXPECT_EQ(nic.received()[1].packet.peer, Parse("127.0.0.3:4792"));
  EXPECT_EQ(nic.received()[1].packet.source_port, 4792);
}

TEST_F(UdpFabricTest, Ipv6PacketsWithoutUdpChecksumAreTakenAsTheKernelSendsThem) {
  TestNic nic(loop, "[::1]");
  PlainSocket kernel("[::1]:49152");
  const int on = 1;
  ASSERT_EQ(setsockopt(kernel.fd(), SOL_UDP, UDP_NO_CHECK6_TX, &on, sizeof(on)), 0);
  Bytes datagram(kMaxDatagram);
  datagram.resize(EncodeDatagram(Packet(), IcrcFlow(kernel.local(), nic.address()), 0, datagram.data()));
  kernel.Send(nic.address(), datagram);
  EXPECT_TRUE(WaitFor([&] { return nic.received().size() == 1; }));
}

TEST_F(UdpFabricTest, NoiseIsCountedByReasonAndNeverHandedOver) {
  TestNic nic(loop, "127.0.0.1");
  PlainSocket peer("127.0.0.3:4791");
  const IcrcFlow flow(peer.local(), nic.address());
  const auto sealed = [&](Bytes datagram) {
    const uint32_t icrc = flow.OfDatagram(0, datagram);
    base::StoreLittle<uint32_t>(datagram.data() + datagram.size() - 4, icrc);
    return datagram;
  };
  peer.Send(nic.address(), {});
  peer.Send(nic.address(), Bytes(15));
  peer.Send(nic.address(), Bytes(64));  // no ICRC
  Bytes unknown_opcode(64);
  unknown_opcode[0] = 0xff;
  peer.Send(nic.address(), sealed(unknown_opcode));
  peer.Send(nic.address(), sealed(Bytes(63)));
  for (int i = 0; i < 200; ++i) peer.Send(nic.address(), RandomBytes(random.Below(9000)));
  peer.Send(nic.address(), sealed(Bytes(64)));  // a SEND FIRST
  ASSERT_TRUE(WaitFor([&] { return !nic.received().empty(); }));
  EXPECT_EQ(nic.received().size(), 1u);
  const UdpCounters& counters = nic.counters();
  const auto malformed = [&](DecodeResult result) { return counters.malformed[static_cast<size_t>(result)].value(); };
  EXPECT_GE(malformed(DecodeResult::kTooShort), 2u);  // an empty one is one, too
  EXPECT_EQ(malformed(DecodeResult::kUnknownOpcode), 1u);
  EXPECT_EQ(malformed(DecodeResult::kUnalignedLength), 1u);
  EXPECT_EQ(counters.Dropped(UdpDrop::kIcrc) + counters.Dropped(UdpDrop::kMalformed), 205u);
}

TEST_F(UdpFabricTest, ASmallReceiveBufferLosesPacketsAndReportsIt) {
  UdpFabricOptions options;
  options.socket.receive_buffer = 65536;
  TestNic a(loop, "127.0.0.1");
  TestNic b(loop, "127.0.0.2", options);
  EXPECT_GT(b.port().receive_window(), 8192u);
  EXPECT_LT(b.port().receive_window(), 65536u);
  const Bytes payload = RandomBytes(4096);
  const std::vector<Packet> packets(1000, Make(PacketOpcode::kWriteMiddle, 1, b.address(), payload));
  ASSERT_EQ(a.port().Send(packets), packets.size());
  Settle();
  ASSERT_EQ(a.port().Send({packets.data(), 1}), 1u);
  ASSERT_TRUE(WaitFor([&] { return b.counters().Dropped(UdpDrop::kSocketBuffer) > 0; }));
  EXPECT_GE(b.received().size() * 4096, b.port().receive_window());
}

TEST_F(UdpFabricTest, TheReceiveWindowFits) {
  TestNic a(loop, "127.0.0.1");
  TestNic b(loop, "127.0.0.2");
  for (uint32_t size : {256, 1024, 4096}) {
    const size_t before = b.received().size();
    const Bytes payload = RandomBytes(size);
    const std::vector<Packet> packets(b.port().receive_window() / size,
                                      Make(PacketOpcode::kWriteMiddle, 1, b.address(), payload));
    ASSERT_EQ(a.port().Send(packets), packets.size());
    ASSERT_TRUE(WaitFor([&] { return b.received().size() == before + packets.size(); })) << size;
  }
  EXPECT_EQ(b.counters().Dropped(UdpDrop::kSocketBuffer), 0u);
}

TEST_F(UdpFabricTest, UnsendablePacketsAreDroppedAndCounted) {
  TestNic a(loop, "127.0.0.1");
  TestNic b(loop, "127.0.0.2");
  const Bytes payload = RandomBytes(100);
  const Packet lost = Make(PacketOpcode::kSendOnly, 1, Parse("[fd00::1]"), payload);
  const Packet good = Make(PacketOpcode::kSendOnly, 2, b.address(), payload);
  const std::vector<Packet> packets = {lost, lost, good, lost, good};
  ASSERT_EQ(a.port().Send(packets), packets.size());
  ASSERT_TRUE(WaitFor([&] { return b.received().size() == 2; }));
  EXPECT_EQ(a.counters().Dropped(UdpDrop::kUnreachable), 3u);
}

TEST_F(UdpFabricTest, AReceiverMayDropItsPortInTheMiddleOfABatch) {
  TestNic a(loop, "127.0.0.1");
  UdpFabric fabric(loop);
  std::unique_ptr<Port> port;
  int batches = 0;
  port = fabric
             .Open(loop, Parse("127.0.0.2"),
                   {[&](absl::Span<const Packet> packets) {
                      ++batches;
                      port.reset();
                      EXPECT_EQ(packets.front().payload[0].data[0], 'x');
                    },
                    [] {}})
             .value();
  const Bytes payload(100, 'x');
  const std::vector<Packet> packets(1000, Make(PacketOpcode::kSendOnly, 1, port->address(), payload));
  ASSERT_EQ(a.port().Send(packets), packets.size());
  ASSERT_TRUE(WaitFor([&] { return batches > 0; }));
  Settle();
  EXPECT_EQ(batches, 1);
}

TEST_F(UdpFabricTest, APortReportsItsMtuAndReceiveWindow) {
  TestNic a(loop, "127.0.0.1");
  EXPECT_EQ(a.port().max_mtu(), 4096u);
  EXPECT_GE(a.port().receive_window(), 64u * 4096);
}

TEST_F(UdpFabricTest, ADroppedPortLeavesItsAddressFree) {
  TestNic a(loop, "127.0.0.1");
  a.Unplug();
  TestNic again(loop, "127.0.0.1");
}

TEST_F(UdpFabricTest, TimersRunWhilePacketsFloodIn) {
  TestNic a(loop, "127.0.0.1");
  const Bytes payload = RandomBytes(1024);
  const std::vector<Packet> packets(64, Make(PacketOpcode::kWriteMiddle, 1, Parse("127.0.0.2"), payload));
  UdpFabric fabric(loop);
  // Each batch that arrives sends the next to itself: there is always something to receive.
  std::unique_ptr<Port> port;
  port = fabric.Open(loop, Parse("127.0.0.2"), {[&](absl::Span<const Packet>) { port->Send(packets); }, [] {}}).value();
  a.port().Send(packets);
  a.port().Send(packets);
  int ticks = 0;
  base::Timer timer;
  std::function<void()> tick = [&] {
    ++ticks;
    timer = loop.RunAfter(base::Microseconds(100), tick);
  };
  tick();
  ASSERT_TRUE(WaitFor([&] { return fabric.counters().packets_received.value() > 20000; }));
  EXPECT_GT(ticks, 5);
}

TEST_F(UdpFabricTest, ATapSeesEveryDatagramWithTheIdentificationThatItsIcrcCovers) {
  class Tap final : public WireTap {
   public:
    void Show(const Datagram& datagram) override {
      Bytes bytes;
      for (const PayloadSlice& piece : datagram.pieces)
        bytes.insert(bytes.end(), piece.data, piece.data + piece.length);
      const IcrcFlow flow(datagram.source, datagram.destination);
      EXPECT_EQ(flow.OfDatagram(datagram.identification, bytes), ReceivedIcrc(bytes));
      identifications.push_back(datagram.identification);
    }
    std::vector<uint16_t> identifications;
  };
  Tap sent, received;
  UdpFabricOptions sends;
  sends.tap = &sent;
  UdpFabricOptions receives;
  receives.tap = &received;
  TestNic a(loop, "127.0.0.1", sends);
  TestNic b(loop, "127.0.0.2", receives);
  const Bytes payload = RandomBytes(1023);
  const std::vector<Packet> packets(5, Make(PacketOpcode::kWriteMiddle, 1, b.address(), payload));
  ASSERT_EQ(a.port().Send(packets), packets.size());
  ASSERT_TRUE(WaitFor([&] { return b.received().size() == 5; }));
  EXPECT_EQ(sent.identifications, (std::vector<uint16_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(received.identifications, sent.identifications);
}

TEST(ParseUdpDeviceTest, TakesAnAddressAndPerhapsAPort) {
  EXPECT_EQ(ParseUdpDevice("soft:udp@10.0.0.1")->address, Parse("10.0.0.1:4791"));
  EXPECT_EQ(ParseUdpDevice("soft:udp@10.0.0.1:4800")->address, Parse("10.0.0.1:4800"));
  EXPECT_EQ(ParseUdpDevice("soft:udp@[fd00::1]:4800")->address, Parse("[fd00::1]:4800"));
  EXPECT_FALSE(ParseUdpDevice("soft:udp@10.0.0.1")->raw);
  EXPECT_EQ(ParseUdpDevice("soft:raw@10.0.0.1")->address, Parse("10.0.0.1:4791"));
  EXPECT_TRUE(ParseUdpDevice("soft:raw@10.0.0.1")->raw);
  EXPECT_FALSE(ParseUdpDevice("soft:loopback").ok());
  EXPECT_FALSE(ParseUdpDevice("soft:udp@").ok());
  EXPECT_FALSE(ParseUdpDevice("soft:udp@host").ok());
}

TEST(UdpCountersTest, EveryDropHasAName) {
  for (uint32_t i = 0; i < kUdpDrops; ++i) EXPECT_STRNE(ToString(static_cast<UdpDrop>(i)), "?");
}

}  // namespace
}  // namespace tokamak::verbs::soft
