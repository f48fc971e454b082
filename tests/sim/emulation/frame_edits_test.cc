#include "sim/emulation/frame_edits.h"

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "tests/sim/emulation/frame_bytes.h"

namespace tokamak::sim {
namespace {

// A right header sums up to zero.
uint16_t HeaderSum(const std::vector<uint8_t>& frame) { return InternetChecksum({&frame[kEthernetHeader], 20}); }

TEST(FrameEditsTest, AMarkChangesTheTwoBitsAndKeepsTheHeaderRight) {
  base::Random random(1);
  for (int i = 0; i < 1000; ++i) {
    auto frame = Ipv4Frame(kProtocolUdp, 4791, 100, static_cast<uint8_t>(random.Next()));
    base::StoreBig32(&frame[kEthernetHeader + 4], static_cast<uint32_t>(random.Next()));
    base::StoreBig16(&frame[kEthernetHeader + 10], 0);
    base::StoreBig16(&frame[kEthernetHeader + 10], InternetChecksum({&frame[kEthernetHeader], 20}));
    const auto before = frame;
    ASSERT_EQ(HeaderSum(frame), 0);
    MarkCongestion(absl::MakeSpan(frame));
    EXPECT_EQ(HeaderSum(frame), 0);
    EXPECT_EQ(frame[kEthernetHeader + 1], before[kEthernetHeader + 1] | 3);
    for (size_t byte = 0; byte < frame.size(); ++byte) {
      if (byte == kEthernetHeader + 1 || byte == kEthernetHeader + 10 || byte == kEthernetHeader + 11) continue;
      ASSERT_EQ(frame[byte], before[byte]) << byte;
    }
  }
}

TEST(FrameEditsTest, AMarkOfAMarkedFrameChangesNothing) {
  auto frame = Ipv4Frame(kProtocolUdp, 4791, 100, 3);
  const auto before = frame;
  MarkCongestion(absl::MakeSpan(frame));
  EXPECT_EQ(frame, before);
}

TEST(FrameEditsTest, DamageIsInTheIcrcAlone) {
  auto frame = Ipv4Frame(kProtocolUdp, 4791, 100);
  const auto before = frame;
  // Ethernet's padding is no part of the packet.
  frame.resize(frame.size() + 10);
  DamageRoce(absl::MakeSpan(frame));
  for (size_t i = 0; i < before.size(); ++i) {
    const bool icrc = i >= before.size() - 4;
    const bool udp_checksum = i == kEthernetHeader + 26 || i == kEthernetHeader + 27;
    if (udp_checksum) continue;
    EXPECT_EQ(frame[i] == before[i], !icrc) << i;
  }
  EXPECT_EQ(base::LoadBig16(&frame[kEthernetHeader + 26]), 0);
}

TEST(FrameEditsTest, AMissingCheckSumIsFilledIn) {
  auto frame = Ipv4Frame(kProtocolTcp, 80, 101);
  const uint32_t start = kEthernetHeader + 20;
  // The kernel leaves the sum of the pseudo header there.
  uint32_t pseudo = 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + kProtocolTcp + static_cast<uint32_t>(frame.size() - start);
  pseudo = (pseudo & 0xffff) + (pseudo >> 16);
  base::StoreBig16(&frame[start + 16], static_cast<uint16_t>(pseudo));
  ASSERT_TRUE(CompleteChecksum(absl::MakeSpan(frame), start, 16));
  // A receiver's check: the whole, with the pseudo header, sums up to zero.
  std::vector<uint8_t> checked = {
      10, 0, 0, 1, 10, 0, 0, 2, 0, kProtocolTcp, 0, static_cast<uint8_t>(frame.size() - start)};
  checked.insert(checked.end(), frame.begin() + start, frame.end());
  EXPECT_EQ(InternetChecksum(checked), 0);
}

TEST(FrameEditsTest, ACheckSumOutsideOfTheFrameIsRefused) {
  auto frame = Ipv4Frame(kProtocolTcp, 80, 0);
  const auto before = frame;
  const auto size = static_cast<uint32_t>(frame.size());
  EXPECT_FALSE(CompleteChecksum(absl::MakeSpan(frame), size, 0));
  EXPECT_FALSE(CompleteChecksum(absl::MakeSpan(frame), size - 1, 0));
  EXPECT_FALSE(CompleteChecksum(absl::MakeSpan(frame), size - 2, 1));
  EXPECT_FALSE(CompleteChecksum(absl::MakeSpan(frame), 65535, 65535));
  EXPECT_EQ(frame, before);
  EXPECT_TRUE(CompleteChecksum(absl::MakeSpan(frame), size - 2, 0));
}

}  // namespace
}  // namespace tokamak::sim
