// The ICRC against packets that the Linux kernel's Soft-RoCE made or accepted, and the search for
// hidden identifications.
#include "lib/verbs/soft/packets/icrc.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/bytes.h"
#include "lib/base/random.h"
#include "tests/support/hex.h"

namespace tokamak::verbs::soft {
namespace {

using Bytes = std::vector<uint8_t>;

Address MakeIpv4(const uint8_t* ip, uint16_t port) {
  Address address;
  address.ip[10] = address.ip[11] = 0xff;
  std::copy(ip, ip + 4, &address.ip[12]);
  address.port = port;
  return address;
}

// A captured IPv4 packet, from the IP header on.
struct Captured {
  explicit Captured(const char* hex) : bytes(support::BytesOfHex(hex)) {}
  uint16_t identification() const { return base::LoadBig16(&bytes[4]); }
  IcrcFlow flow() const {
    return IcrcFlow(MakeIpv4(&bytes[12], base::LoadBig16(&bytes[20])),
                    MakeIpv4(&bytes[16], base::LoadBig16(&bytes[22])));
  }
  absl::Span<const uint8_t> datagram() const { return absl::MakeConstSpan(bytes).subspan(28); }

  Bytes bytes;
};

// An acknowledgement that rxe sent, with an identification of its own choosing.
const Captured kFromKernel(
    "45000030099f400040111c820a4d00020a4d0001f9b012b7001c00001100ffff00123456001111111f000001bce11caa");
// A WRITE of no bytes that rxe accepted, with identification 0.
const Captured kToKernel(
    "4500003c00004000401126150a4d00010a4d000212b712b7002814d60a40ffff000000118011111b00007fc3258540000000025b00000000"
    "b37f2676");

// The one that docs/packets.md draws.
const Captured kDrawn(
    "4500003800004000401126b30a0000010a00000212b712b70024f0d205f0ffff000001238000abcdcafef00d68656c6c6f00000084091f99");

Bytes RandomDatagram(base::Random& random, uint32_t length) {
  Bytes datagram(length);
  for (uint8_t& byte : datagram) byte = static_cast<uint8_t>(random.Next());
  return datagram;
}

void Seal(const IcrcFlow& flow, uint16_t identification, Bytes* datagram) {
  base::StoreLittle(datagram->data() + datagram->size() - kIcrcLength, flow.OfDatagram(identification, *datagram));
}

TEST(IcrcTest, AgreesWithPacketsOfTheKernelAndOfTheDocumentation) {
  for (const Captured* captured : {&kFromKernel, &kToKernel, &kDrawn}) {
    EXPECT_EQ(captured->flow().OfDatagram(captured->identification(), captured->datagram()),
              ReceivedIcrc(captured->datagram()));
  }
}

TEST(IcrcTest, IsTheSameInOnePieceAndInMany) {
  const IcrcFlow flow = kToKernel.flow();
  const absl::Span<const uint8_t> datagram = kToKernel.datagram();
  const auto length = static_cast<uint32_t>(datagram.size());
  for (uint32_t head = kBthLength; head <= length - kIcrcLength; ++head) {
    uint32_t crc = flow.Start(0, datagram.first(head), length);
    for (uint32_t i = head; i < length - kIcrcLength; ++i) crc = IcrcFlow::Extend(crc, &datagram[i], 1);
    EXPECT_EQ(crc, ReceivedIcrc(datagram)) << head;
  }
}

TEST(IcrcTest, NoticesEveryBitFlipExceptInTheMaskedByte) {
  for (const Captured* captured : {&kFromKernel, &kToKernel}) {
    Bytes datagram(captured->datagram().begin(), captured->datagram().end());
    for (uint32_t bit = 0; bit < datagram.size() * 8; ++bit) {
      datagram[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      const bool intact = captured->flow().OfDatagram(captured->identification(), datagram) == ReceivedIcrc(datagram);
      EXPECT_EQ(intact, bit / 8 == kBthMaskedByte) << bit;
      datagram[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    }
  }
}

TEST(IcrcTest, CoversAddressesPortsAndIpv6) {
  Address source, destination;
  for (size_t i = 0; i < 16; ++i) {
    source.ip[i] = static_cast<uint8_t>(0x20 + i);
    destination.ip[i] = static_cast<uint8_t>(0x40 + i);
  }
  source.port = destination.port = 4791;
  base::Random random(1);
  const Bytes datagram = RandomDatagram(random, 60);
  const IcrcFlow flow(source, destination);
  EXPECT_FALSE(flow.is_ipv4());

  // The same by the words of the specification, byte by byte.
  Bytes covered(8, 0xff);
  for (uint8_t byte : {0x6f, 0xff, 0xff, 0xff, 0, 68, 17, 0xff}) covered.push_back(byte);
  covered.insert(covered.end(), source.ip.begin(), source.ip.end());
  covered.insert(covered.end(), destination.ip.begin(), destination.ip.end());
  for (uint8_t byte : {0x12, 0xb7, 0x12, 0xb7, 0, 68, 0xff, 0xff}) covered.push_back(byte);
  covered.insert(covered.end(), datagram.begin(), datagram.end() - kIcrcLength);
  covered[8 + 40 + 8 + kBthMaskedByte] = 0xff;
  uint32_t crc = 0xffffffff;
  for (uint8_t byte : covered) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  crc = ~crc;

  EXPECT_EQ(flow.OfDatagram(0, datagram), crc);
  EXPECT_EQ(flow.OfDatagram(77, datagram), crc) << "IPv6 has no identification";
  source.port = 4792;
  EXPECT_NE(IcrcFlow(source, destination).OfDatagram(0, datagram), crc);
  source.port = 4791;
  destination.ip[15] ^= 1;
  EXPECT_NE(IcrcFlow(source, destination).OfDatagram(0, datagram), crc);
}

TEST(IdentificationSolverTest, FindsTheKernelsIdentification) {
  IdentificationSolver solver;
  for (const Captured* captured : {&kFromKernel, &kToKernel}) {
    const auto length = static_cast<uint32_t>(captured->datagram().size());
    for (uint16_t assumed : {0, 1, 63, 0xffff}) {
      const uint32_t computed = captured->flow().OfDatagram(assumed, captured->datagram());
      EXPECT_EQ(solver.Solve(assumed, computed, ReceivedIcrc(captured->datagram()), length),
                captured->identification());
    }
  }
}

TEST(IdentificationSolverTest, FindsEveryIdentificationAtEveryLength) {
  base::Random random(2);
  IdentificationSolver solver;
  const IcrcFlow flow = kToKernel.flow();
  for (int round = 0; round < 20000; ++round) {
    const auto length = static_cast<uint32_t>(kMinDatagram + 4 * random.Below((kMaxDatagram - kMinDatagram) / 4 + 1));
    const auto identification = static_cast<uint16_t>(random.Next());
    const auto assumed = static_cast<uint16_t>(random.Below(64));
    Bytes datagram = RandomDatagram(random, length);
    Seal(flow, identification, &datagram);
    ASSERT_EQ(solver.Solve(assumed, flow.OfDatagram(assumed, datagram), ReceivedIcrc(datagram), length), identification)
        << length;
  }
}

TEST(IdentificationSolverTest, SeesThroughCorruptionAllButOnceInSixtyFiveThousand) {
  base::Random random(3);
  IdentificationSolver solver;
  const IcrcFlow flow = kToKernel.flow();
  Bytes datagram = RandomDatagram(random, 1060);
  Seal(flow, 5, &datagram);
  int missed = 0;
  constexpr int kRounds = 100000;
  for (int round = 0; round < kRounds; ++round) {
    Bytes corrupt = datagram;
    for (int i = 0; i < 2; ++i) {
      uint8_t& byte = corrupt[kBthMaskedByte + 1 + random.Below(corrupt.size() - kBthMaskedByte - 1)];
      byte = static_cast<uint8_t>(byte ^ (1 + random.Below(255)));
    }
    if (solver.Solve(0, flow.OfDatagram(0, corrupt), ReceivedIcrc(corrupt), 1060).has_value()) ++missed;
  }
  EXPECT_LE(missed, 10) << "1.5 are expected";
}

TEST(IdentificationSolverTest, SolvesNothingOutsideOfPossibleLengths) {
  IdentificationSolver solver;
  EXPECT_EQ(solver.Solve(0, 1, 1, kMinDatagram - 1), std::nullopt);
  EXPECT_EQ(solver.Solve(0, 1, 1, kMaxDatagram + 1), std::nullopt);
  EXPECT_EQ(solver.Solve(7, 1, 1, kMinDatagram), 7);
}

}  // namespace
}  // namespace tokamak::verbs::soft
