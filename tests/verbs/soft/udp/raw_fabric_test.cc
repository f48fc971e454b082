// soft:raw: IPv4 headers of our own making, and the whole ICRC checked. In a network of its own,
// where raw sockets are allowed.
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "lib/base/bytes.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/soft/udp/ipv4.h"
#include "lib/verbs/soft/udp/raw_socket.h"
#include "lib/verbs/soft/udp/udp_receiver.h"
#include "tests/os/own_network.h"
#include "tests/verbs/soft/udp/udp_fabric_fixture.h"

namespace tokamak::verbs::soft {
namespace {

using testing::HasSubstr;

// Sends and sees IPv4 packets as they are.
class RawPeer final {
 public:
  RawPeer() : fd_(socket(AF_INET, SOCK_RAW, IPPROTO_UDP)) {
    const int on = 1;
    EXPECT_EQ(setsockopt(fd_.get(), IPPROTO_IP, IP_HDRINCL, &on, sizeof(on)), 0);
  }

  void Send(const Address& to, const Bytes& packet) {
    sockaddr_storage name;
    const socklen_t length = ToSocketAddress(to, 0, &name);
    EXPECT_EQ(sendto(fd_.get(), packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&name), length),
              static_cast<ssize_t>(packet.size()));
  }

  // All that arrived so far at any address of this network.
  std::vector<Bytes> Seen() {
    std::vector<Bytes> seen;
    for (;;) {
      Bytes packet(65536);
      const ssize_t length = recv(fd_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
      if (length < 0) return seen;
      packet.resize(static_cast<size_t>(length));
      seen.push_back(std::move(packet));
    }
  }

 private:
  const os::FileDescriptor fd_;
};

class RawFabricTest : public UdpFabricTest {
 protected:
  void SetUp() override {
    static const absl::Status network = tests::EnterOwnNetwork();
    if (absl::IsUnavailable(network)) GTEST_SKIP() << network.message();
    ASSERT_TRUE(network.ok()) << network;
  }

  static UdpFabricOptions Raw() {
    UdpFabricOptions options;
    options.raw = true;
    return options;
  }

  static Bytes WithHeaders(const Packet& packet, const Address& from, uint16_t identification, uint16_t covered) {
    Bytes bytes(kIpv4AndUdpHeader + kMaxDatagram);
    const IcrcFlow flow(from, packet.peer);
    const uint32_t length = EncodeDatagram(packet, flow, covered, &bytes[kIpv4AndUdpHeader]);
    WriteIpv4AndUdp(from, packet.peer, identification, length, bytes.data());
    bytes.resize(kIpv4AndUdpHeader + length);
    return bytes;
  }

  // So many small packets behind each other, as one UDP_SEGMENT send arrives.
  Bytes Segments(uint32_t count, const Address& to) {
    const Address from = Parse("127.0.0.3:49152");
    const Bytes payload = RandomBytes(8);
    Bytes bytes(kIpv4AndUdpHeader);
    for (uint16_t i = 1; i <= count; ++i) {
      const Bytes one = WithHeaders(Make(PacketOpcode::kSendOnly, i, to, payload), from, i, i);
      bytes.insert(bytes.end(), one.begin() + kIpv4AndUdpHeader, one.end());
    }
    WriteIpv4AndUdp(from, to, 1, static_cast<uint32_t>(bytes.size() - kIpv4AndUdpHeader), bytes.data());
    return bytes;
  }
};

TEST_F(RawFabricTest, PacketsArriveWholeAndInOrder) {
  TestNic a(loop, "127.0.0.1", Raw());
  TestNic b(loop, "127.0.0.2", Raw());
  ExchangeRandomBatches(a, b);
}

TEST_F(RawFabricTest, AUdpPortReceivesFromARawOne) {
  TestNic a(loop, "127.0.0.1", Raw());
  TestNic b(loop, "127.0.0.2");
  ExchangeRandomBatches(a, b);
}

TEST_F(RawFabricTest, ARawPortReceivesFromAUdpOneAlsoInSegments) {
  TestNic a(loop, "127.0.0.1");
  TestNic b(loop, "127.0.0.2", Raw());
  ExchangeRandomBatches(a, b);
  EXPECT_LT(a.counters().send_calls.value(), 400u) << "no segments were sent";
}

TEST_F(RawFabricTest, DscpAndEcnComeFromTheHeader) {
  TestNic a(loop, "127.0.0.1", Raw());
  TestNic b(loop, "127.0.0.2", Raw());
  const Bytes payload = RandomBytes(100);
  Packet packet = Make(PacketOpcode::kSendOnly, 1, b.address(), payload);
  packet.ecn = Ecn::kMarked;
  packet.dscp = 26;
  ASSERT_EQ(a.port().Send({&packet, 1}), 1u);
  ASSERT_TRUE(WaitFor([&] { return b.received().size() == 1; }));
  EXPECT_EQ(b.received()[0].packet.ecn, Ecn::kMarked);
  EXPECT_EQ(b.received()[0].packet.dscp, 26);
}

TEST_F(RawFabricTest, EachPacketHasDfAnIdentificationOfItsOwnAndTheSourcePortOfItsFlow) {
  TestNic a(loop, "127.0.0.1", Raw());
  TestNic b(loop, "127.0.0.2");
  RawPeer wire;
  const Bytes payload = RandomBytes(100);
  std::vector<Packet> packets;
  for (uint32_t i = 0; i < 100; ++i) {
    packets.push_back(Make(PacketOpcode::kSendOnly, i, b.address(), payload));
    packets.back().source_port = static_cast<uint16_t>(i % 2 == 0 ? kFlowPorts + i : 0);
  }
  ASSERT_EQ(a.port().Send(packets), packets.size());
  ASSERT_TRUE(WaitFor([&] { return b.received().size() == packets.size(); }));
  std::set<uint16_t> identifications;
  uint32_t psn = 0;
  for (const Bytes& packet : wire.Seen()) {
    const std::optional<Ipv4AndUdp> header = ReadIpv4AndUdp(packet);
    ASSERT_TRUE(header.has_value());
    EXPECT_TRUE(header->dont_fragment);
    EXPECT_EQ(header->source.port, psn % 2 == 0 ? kFlowPorts + psn : 4791);
    identifications.insert(header->identification);
    ++psn;
  }
  EXPECT_EQ(identifications.size(), 100u);
  EXPECT_EQ(identifications.count(0), 0u);
  EXPECT_EQ(b.received()[2].packet.source_port, kFlowPorts + 2);
  EXPECT_EQ(b.received()[2].packet.peer, a.address());
}

TEST_F(RawFabricTest, TheWholeIcrcIsChecked) {
  TestNic nic(loop, "127.0.0.1", Raw());
  RawPeer peer;
  const Address from = Parse("127.0.0.3:49152");
  const Bytes payload = RandomBytes(1000);
  const auto packet = [&](uint32_t psn) { return Make(PacketOpcode::kSendOnly, psn, nic.address(), payload); };
  peer.Send(nic.address(), WithHeaders(packet(1), from, 1000, 1001));  // soft:udp would take it: it cannot know better
  Bytes damaged = WithHeaders(packet(2), from, 1002, 1002);
  damaged.back() ^= 1;
  peer.Send(nic.address(), damaged);
  peer.Send(nic.address(), WithHeaders(packet(3), from, 1003, 1003));
  ASSERT_TRUE(WaitFor([&] { return !nic.received().empty(); }));
  EXPECT_EQ(nic.received()[0].packet.psn, 3u);
  EXPECT_EQ(nic.received()[0].packet.peer, Parse("127.0.0.3:4791"));
  EXPECT_EQ(nic.counters().Dropped(UdpDrop::kIcrc), 2u);
}

TEST_F(RawFabricTest, APacketThatMayBeFragmentedHasAnIcrcOfItsOwn) {
  TestNic nic(loop, "127.0.0.1", Raw());
  RawPeer peer;
  const Address from = Parse("127.0.0.3:49152");
  Bytes packet = WithHeaders(Make(PacketOpcode::kSendOnly, 7, nic.address(), RandomBytes(64)), from, 9, 9);
  packet[6] = 0;
  absl::Span<uint8_t> datagram = absl::MakeSpan(packet).subspan(kIpv4AndUdpHeader);
  const IcrcFlow flow(from, nic.address(), false);
  base::StoreLittle<uint32_t>(&datagram[datagram.size() - 4], flow.OfDatagram(9, datagram));
  peer.Send(nic.address(), packet);
  ASSERT_TRUE(WaitFor([&] { return !nic.received().empty(); }));
  EXPECT_EQ(nic.counters().Dropped(UdpDrop::kIcrc), 0u);
}

TEST_F(RawFabricTest, NoiseIsDropped) {
  TestNic nic(loop, "127.0.0.1", Raw());
  RawPeer peer;
  const Address from = Parse("127.0.0.3:49152");
  for (int i = 0; i < 300; ++i) {
    Bytes noise(kIpv4AndUdpHeader + random.Below(20000));
    for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random.Next());
    const auto length = static_cast<uint32_t>(noise.size() - kIpv4AndUdpHeader);
    WriteIpv4AndUdp(from, nic.address(), static_cast<uint16_t>(i + 1), length, noise.data());
    peer.Send(nic.address(), noise);
  }
  peer.Send(nic.address(), WithHeaders(Make(PacketOpcode::kSendOnly, 5, nic.address(), RandomBytes(9)), from, 1, 1));
  ASSERT_TRUE(WaitFor([&] { return !nic.received().empty(); }));
  EXPECT_EQ(nic.received().size(), 1u);
  EXPECT_EQ(nic.counters().Dropped(UdpDrop::kIcrc) + nic.counters().Dropped(UdpDrop::kMalformed), 300u);
}

// Messages that wait together are one batch.
TEST_F(RawFabricTest, AfterSomeFailedSearchesABatchIsNotSearchedForSegments) {
  TestNic nic(loop, "127.0.0.1", Raw());
  RawPeer peer;
  const Bytes segments = Segments(2, nic.address());
  Bytes damaged = segments;
  damaged[kIpv4AndUdpHeader] ^= 1;
  const auto flood = [&](uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) peer.Send(nic.address(), damaged);
    peer.Send(nic.address(), segments);
  };
  flood(UdpReceiver::kMaxFailedSearches - 1);
  ASSERT_TRUE(WaitFor([&] { return nic.received().size() == 2; }));
  flood(UdpReceiver::kMaxFailedSearches);
  ASSERT_TRUE(WaitFor([&] { return nic.counters().Dropped(UdpDrop::kIcrc) == 2 * UdpReceiver::kMaxFailedSearches; }));
  EXPECT_EQ(nic.received().size(), 2u);
  peer.Send(nic.address(), segments);
  EXPECT_TRUE(WaitFor([&] { return nic.received().size() == 4; })) << "the next batch is";
}

TEST_F(RawFabricTest, NoMoreSegmentsAreTakenThanAKernelMakes) {
  TestNic nic(loop, "127.0.0.1", Raw());
  RawPeer peer;
  peer.Send(nic.address(), Segments(UdpReceiver::kMaxSegments, nic.address()));
  ASSERT_TRUE(WaitFor([&] { return nic.received().size() == UdpReceiver::kMaxSegments; }));
  peer.Send(nic.address(), Segments(UdpReceiver::kMaxSegments + 2, nic.address()));
  ASSERT_TRUE(WaitFor([&] { return nic.received().size() == 2 * UdpReceiver::kMaxSegments; }));
  EXPECT_EQ(nic.counters().Dropped(UdpDrop::kTruncated), 1u);
  EXPECT_EQ(nic.counters().Dropped(UdpDrop::kIcrc), 0u);
}

TEST_F(RawFabricTest, OnePortOfOneAddressIsOpenedOnce) {
  TestNic nic(loop, "127.0.0.1", Raw());
  for (const UdpFabricOptions& options : {Raw(), UdpFabricOptions()}) {
    UdpFabric fabric(loop, options);
    EXPECT_EQ(fabric.Open(loop, Parse("127.0.0.1"), {}).status().code(), absl::StatusCode::kAlreadyExists);
  }
}

TEST_F(RawFabricTest, AnIpv6AddressIsForUdp) {
  const absl::Status status = OpenRawSocket(Parse("[::1]"), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("soft:udp@"));
}

TEST_F(RawFabricTest, AMissingCapabilityIsReportedWithItsRemedy) {
  absl::Status status;
  std::thread([&] {  // capabilities are a thread's
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
    status = OpenRawSocket(Parse("127.0.0.1"), {}).status();
  })
      .join();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("CAP_NET_RAW"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("soft:udp@IP"));
}

}  // namespace
}  // namespace tokamak::verbs::soft
