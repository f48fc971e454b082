#include "sim/emulation/frame_head.h"

#include "gtest/gtest.h"
#include "tests/sim/emulation/frame_bytes.h"

namespace tokamak::sim {
namespace {

using verbs::soft::Ecn;

const auto kPeer = *verbs::Address::Parse("10.0.0.2");

TEST(FrameHeadTest, RoceIsUdpToItsPort) {
  const auto bytes = Ipv4Frame(kProtocolUdp, 4791, 100, 26 << 2 | 2);
  const FrameHead head = ReadFrameHead(bytes);
  EXPECT_EQ(head.kind, FrameKind::kRoce);
  EXPECT_EQ(head.frame.destination.ip, kPeer.ip);
  EXPECT_EQ(head.frame.dscp, 26);
  EXPECT_EQ(head.frame.ecn, Ecn::kCapable0);
  EXPECT_EQ(head.frame.bytes.data(), bytes.data());
  EXPECT_EQ(head.frame.bytes.size(), bytes.size());
}

TEST(FrameHeadTest, ADatagramThatIsTooShortForRoceIsCarriedAsItIs) {
  EXPECT_EQ(ReadFrameHead(Ipv4Frame(kProtocolUdp, 4791, 15)).kind, FrameKind::kIpv4);
  EXPECT_EQ(ReadFrameHead(Ipv4Frame(kProtocolUdp, 4791, 16)).kind, FrameKind::kRoce);
}

TEST(FrameHeadTest, OtherIpv4FramesAreCarried) {
  for (const auto& bytes : {Ipv4Frame(kProtocolTcp, 4791, 100, 8), Ipv4Frame(kProtocolUdp, 53, 100, 8),
                            Ipv4Frame(1 /* ICMP */, 4791, 100, 8)}) {
    const FrameHead head = ReadFrameHead(bytes);
    EXPECT_EQ(head.kind, FrameKind::kIpv4);
    EXPECT_EQ(head.frame.destination.ip, kPeer.ip);
    EXPECT_EQ(head.frame.dscp, 2);
    EXPECT_EQ(head.frame.ecn, Ecn::kNotCapable);
  }
}

TEST(FrameHeadTest, FlowsDifferByProtocolAndPorts) {
  const auto flow = [](const std::vector<uint8_t>& bytes) { return ReadFrameHead(bytes).frame.flow; };
  EXPECT_EQ(flow(Ipv4Frame(kProtocolTcp, 80, 1)), flow(Ipv4Frame(kProtocolTcp, 80, 500)));
  EXPECT_NE(flow(Ipv4Frame(kProtocolTcp, 80, 1)), flow(Ipv4Frame(kProtocolTcp, 81, 1)));
  EXPECT_NE(flow(Ipv4Frame(kProtocolTcp, 80, 1)), flow(Ipv4Frame(kProtocolUdp, 80, 1)));
}

TEST(FrameHeadTest, FragmentsOfAPacketAreOneFlowAndNoRoce) {
  auto first = Ipv4Frame(kProtocolUdp, 4791, 100);
  first[kEthernetHeader + 6] = 0x20;  // more follow
  auto second = Ipv4Frame(kProtocolUdp, 53, 100);
  second[kEthernetHeader + 7] = 13;  // it is not the first
  EXPECT_EQ(ReadFrameHead(first).kind, FrameKind::kIpv4);
  EXPECT_EQ(ReadFrameHead(first).frame.flow, ReadFrameHead(second).frame.flow);
}

TEST(FrameHeadTest, OptionsAreSkipped) {
  auto bytes = Ipv4Frame(kProtocolUdp, 4791, 100);
  bytes.insert(bytes.begin() + kEthernetHeader + 20, 4, 1 /* no operation */);
  bytes[kEthernetHeader] = 0x46;
  base::StoreBig16(&bytes[kEthernetHeader + 2], static_cast<uint16_t>(bytes.size() - kEthernetHeader));
  EXPECT_EQ(ReadFrameHead(bytes).kind, FrameKind::kRoce);
}

TEST(FrameHeadTest, AnArpRequestGoesToTheHostThatItAsksFor) {
  const auto bytes = ArpFrame();
  const FrameHead head = ReadFrameHead(bytes);
  EXPECT_EQ(head.kind, FrameKind::kArp);
  EXPECT_EQ(head.frame.destination.ip, kPeer.ip);
  EXPECT_EQ(head.frame.dscp, 0);
}

TEST(FrameHeadTest, FramesThatTheFabricDoesNotCarryAreOther) {
  auto ipv6 = Ipv4Frame(kProtocolUdp, 4791, 100);
  base::StoreBig16(&ipv6[12], 0x86dd);
  EXPECT_EQ(ReadFrameHead(ipv6).kind, FrameKind::kOther);
  auto multicast = Ipv4Frame(kProtocolUdp, 4791, 100);
  multicast[kEthernetHeader + 16] = 224;
  EXPECT_EQ(ReadFrameHead(multicast).kind, FrameKind::kOther);
  auto token_ring = ArpFrame();
  token_ring[kEthernetHeader + 1] = 6;
  EXPECT_EQ(ReadFrameHead(token_ring).kind, FrameKind::kOther);
}

TEST(FrameHeadTest, EveryTruncationAndFirstByteIsHarmless) {
  for (const auto& whole : {Ipv4Frame(kProtocolUdp, 4791, 16), Ipv4Frame(kProtocolTcp, 80, 3), ArpFrame()}) {
    for (size_t length = 0; length < whole.size(); ++length) {
      // Memory of its own size, so that a sanitizer sees reads beyond it.
      const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
      EXPECT_EQ(ReadFrameHead(cut).kind, FrameKind::kMalformed) << length;
    }
  }
  auto bytes = Ipv4Frame(kProtocolUdp, 4791, 16);
  for (int first = 0; first < 256; ++first) {
    bytes[kEthernetHeader] = static_cast<uint8_t>(first);
    const FrameKind kind = ReadFrameHead(bytes).kind;
    if (first < 0x45 || first > 0x4b) {
      EXPECT_EQ(kind, FrameKind::kMalformed) << first;
    }
  }
}

}  // namespace
}  // namespace tokamak::sim
