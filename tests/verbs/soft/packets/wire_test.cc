// Packets through bytes and back, and the decoder on bytes that nobody should have sent.
#include "lib/verbs/soft/packets/wire.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "lib/base/bytes.h"
#include "lib/base/random.h"
#include "tests/support/hex.h"

namespace tokamak::verbs::soft {
namespace {

using Bytes = std::vector<uint8_t>;

std::vector<PacketOpcode> KnownOpcodes() {
  std::vector<PacketOpcode> opcodes;
  for (int i = 0; i < 256; ++i) {
    if (IsKnown(static_cast<PacketOpcode>(i))) opcodes.push_back(static_cast<PacketOpcode>(i));
  }
  return opcodes;
}

bool StandsAlone(PacketOpcode opcode) {
  return opcode == PacketOpcode::kReadRequest || opcode == PacketOpcode::kAcknowledge ||
         opcode == PacketOpcode::kCongestionNotification || opcode == PacketOpcode::kSelectiveNak ||
         HasAtomicEth(opcode) || HasAtomicAckEth(opcode);
}

// Fills every field that the opcode has.
Packet RandomPacket(base::Random& random, PacketOpcode opcode, absl::Span<const uint8_t> payload) {
  Packet packet;
  packet.opcode = opcode;
  packet.solicited = random.Chance(0.5);
  packet.ack_request = random.Chance(0.5);
  packet.pkey = static_cast<uint16_t>(random.Next());
  packet.destination = static_cast<uint32_t>(random.Below(1 << 24));
  packet.psn = static_cast<uint32_t>(random.Below(1 << 24));
  if (HasReth(opcode) || HasAtomicEth(opcode)) packet.remote_address = random.Next();
  if (HasReth(opcode) || HasAtomicEth(opcode) || HasIeth(opcode)) packet.rkey = static_cast<uint32_t>(random.Next());
  if (HasReth(opcode)) packet.dma_length = static_cast<uint32_t>(random.Next());
  if (HasAtomicEth(opcode) || opcode == PacketOpcode::kSelectiveNak) {
    packet.swap_or_add = random.Next();
    packet.compare = random.Next();
  }
  if (HasAeth(opcode)) {
    packet.syndrome = static_cast<uint8_t>(random.Next());
    packet.msn = static_cast<uint32_t>(random.Below(1 << 24));
  }
  if (HasAtomicAckEth(opcode)) packet.original = random.Next();
  if (HasImmediate(opcode)) packet.immediate = static_cast<uint32_t>(random.Next());
  if (HasDeth(opcode)) {
    packet.qkey = static_cast<uint32_t>(random.Next());
    packet.source_queue_pair = static_cast<uint32_t>(random.Below(1 << 24));
  }
  if (!StandsAlone(opcode) && !payload.empty()) {
    const auto cut = static_cast<uint32_t>(random.Below(payload.size()) + 1);
    packet.payload[packet.slices++] = {payload.data(), cut};
    if (cut < payload.size()) {
      packet.payload[packet.slices++] = {payload.data() + cut, static_cast<uint32_t>(payload.size() - cut)};
    }
  }
  return packet;
}

Bytes PayloadOf(const Packet& packet) {
  Bytes bytes;
  for (uint32_t i = 0; i < packet.slices; ++i) {
    bytes.insert(bytes.end(), packet.payload[i].data, packet.payload[i].data + packet.payload[i].length);
  }
  return bytes;
}

Bytes Serialise(const Packet& packet) {
  Bytes bytes(kMaxHeaderLength);
  bytes.resize(EncodeHeader(packet, bytes.data()));
  EXPECT_EQ(bytes.size(), HeaderLength(packet.opcode));
  const Bytes payload = PayloadOf(packet);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  bytes.resize(DatagramLength(packet));
  return bytes;
}

void ExpectEqual(const Packet& a, const Packet& b) {
  EXPECT_EQ(a.opcode, b.opcode);
  EXPECT_EQ(a.solicited, b.solicited);
  EXPECT_EQ(a.ack_request, b.ack_request);
  EXPECT_EQ(a.corrupt, b.corrupt);
  EXPECT_EQ(a.pkey, b.pkey);
  EXPECT_EQ(a.destination, b.destination);
  EXPECT_EQ(a.psn, b.psn);
  EXPECT_EQ(a.remote_address, b.remote_address);
  EXPECT_EQ(a.rkey, b.rkey);
  EXPECT_EQ(a.dma_length, b.dma_length);
  EXPECT_EQ(a.swap_or_add, b.swap_or_add);
  EXPECT_EQ(a.compare, b.compare);
  EXPECT_EQ(a.syndrome, b.syndrome);
  EXPECT_EQ(a.msn, b.msn);
  EXPECT_EQ(a.original, b.original);
  EXPECT_EQ(a.immediate, b.immediate);
  EXPECT_EQ(a.qkey, b.qkey);
  EXPECT_EQ(a.source_queue_pair, b.source_queue_pair);
  EXPECT_EQ(PayloadOf(a), PayloadOf(b));
}

TEST(PacketTest, HeadersOfAnOpcodeAddUpToItsHeaderLength) {
  for (int i = 0; i < 256; ++i) {
    const auto opcode = static_cast<PacketOpcode>(i);
    uint32_t length = IsKnown(opcode) ? kBthLength : 0;
    if (HasDeth(opcode)) length += 8;
    if (HasReth(opcode)) length += 16;
    if (HasAtomicEth(opcode)) length += 28;
    if (HasAeth(opcode)) length += 4;
    if (HasAtomicAckEth(opcode)) length += 8;
    if (HasImmediate(opcode)) length += 4;
    if (HasIeth(opcode)) length += 4;
    if (opcode == PacketOpcode::kCongestionNotification || opcode == PacketOpcode::kSelectiveNak) length += 16;
    EXPECT_EQ(HeaderLength(opcode), length) << i;
    EXPECT_LE(length, kMaxHeaderLength) << i;
  }
  EXPECT_EQ(KnownOpcodes().size(), 27u);
}

TEST(WireTest, EncodesTheWriteThatTheKernelAccepted) {
  Packet packet;
  packet.opcode = PacketOpcode::kWriteOnly;
  packet.ack_request = true;
  packet.destination = 0x11;
  packet.psn = 0x11111b;
  packet.remote_address = 0x7fc325854000;
  packet.rkey = 0x25b;
  uint8_t header[kMaxHeaderLength];
  const uint32_t length = EncodeHeader(packet, header);
  EXPECT_EQ(absl::BytesToHexString(std::string(header, header + length)),
            "0a40ffff000000118011111b00007fc3258540000000025b00000000");
}

TEST(WireTest, EncodesThePacketDrawnInTheDocumentation) {
  const std::string hello = "hello";
  Packet packet;
  packet.opcode = PacketOpcode::kSendOnlyWithImm;
  packet.solicited = true;
  packet.ack_request = true;
  packet.destination = 0x123;
  packet.psn = 0xabcd;
  packet.immediate = 0xcafef00d;
  packet.slices = 1;
  packet.payload[0] = {reinterpret_cast<const uint8_t*>(hello.data()), 5};
  const Bytes bytes = Serialise(packet);
  EXPECT_EQ(absl::BytesToHexString(std::string(bytes.begin(), bytes.end() - kIcrcLength)),
            "05f0ffff000001238000abcdcafef00d68656c6c6f000000");
}

TEST(WireTest, AnInvalidateNamesItsKeyBetweenBthAndPayload) {
  const std::string bye = "bye";
  Packet packet;
  packet.opcode = PacketOpcode::kSendOnlyWithInvalidate;
  packet.ack_request = true;
  packet.destination = 0x123;
  packet.psn = 0xabcd;
  packet.rkey = 0xcafef00d;
  packet.slices = 1;
  packet.payload[0] = {reinterpret_cast<const uint8_t*>(bye.data()), 3};
  for (const auto& [opcode, first_byte] : {std::pair(PacketOpcode::kSendOnlyWithInvalidate, "17"),
                                           std::pair(PacketOpcode::kSendLastWithInvalidate, "16")}) {
    packet.opcode = opcode;
    const Bytes bytes = Serialise(packet);
    EXPECT_EQ(absl::BytesToHexString(std::string(bytes.begin(), bytes.end() - kIcrcLength)),
              std::string(first_byte) + "50ffff000001238000abcdcafef00d62796500");
    Packet back;
    ASSERT_EQ(Decode(bytes, &back), DecodeResult::kOk);
    ExpectEqual(packet, back);
    // Without the IETH, or with half of one.
    EXPECT_EQ(Decode(absl::MakeConstSpan(bytes).first(kBthLength + kIcrcLength), &back),
              DecodeResult::kTruncatedHeader);
    EXPECT_EQ(Decode(absl::MakeConstSpan(bytes).first(kBthLength + kIcrcLength + 2), &back),
              DecodeResult::kTruncatedHeader);
  }
}

TEST(WireTest, DecodesTheAcknowledgementThatTheKernelSent) {
  const Bytes datagram = support::BytesOfHex("1100ffff00123456001111111f000001bce11caa");
  Packet packet;
  ASSERT_EQ(Decode(datagram, &packet), DecodeResult::kOk);
  EXPECT_EQ(packet.opcode, PacketOpcode::kAcknowledge);
  EXPECT_EQ(packet.destination, 0x123456u);
  EXPECT_EQ(packet.psn, 0x111111u);
  EXPECT_EQ(packet.syndrome, 0x1f);
  EXPECT_EQ(packet.msn, 1u);
  EXPECT_EQ(ReceivedIcrc(datagram), 0xaa1ce1bcu);
}

TEST(WireTest, ACongestionNotificationHasBecnAndSixteenZeroBytes) {
  Packet packet;
  packet.opcode = PacketOpcode::kCongestionNotification;
  packet.destination = 0x123;
  const Bytes bytes = Serialise(packet);
  EXPECT_EQ(absl::BytesToHexString(std::string(bytes.begin(), bytes.end() - kIcrcLength)),
            "8140ffff400001230000000000000000000000000000000000000000");
  Packet back;
  ASSERT_EQ(Decode(bytes, &back), DecodeResult::kOk);
  ExpectEqual(packet, back);
}

TEST(WireTest, EthernetBytesCountTheWholeFrameAndItsGap) {
  const Bytes payload(1001);
  Packet packet;
  packet.peer = *Address::Parse("10.0.0.2");
  packet.opcode = PacketOpcode::kWriteMiddle;
  packet.slices = 1;
  packet.payload[0] = {payload.data(), 1000};
  EXPECT_EQ(EthernetBytes(packet), 1082u);
  packet.payload[0].length = 1001;
  EXPECT_EQ(EthernetBytes(packet), 1086u) << "padded";
  packet.opcode = PacketOpcode::kWriteOnly;
  packet.peer = *Address::Parse("fd00::2");
  EXPECT_EQ(EthernetBytes(packet), 1122u);
}

TEST(PacketTest, DscpAndEcnShareAByte) {
  Packet packet;
  EXPECT_EQ(TrafficClassOf(packet), 0);
  packet.dscp = 48;
  packet.ecn = Ecn::kMarked;
  EXPECT_EQ(TrafficClassOf(packet), 0xc3);
  Packet other;
  SetTrafficClass(0xc3, &other);
  EXPECT_EQ(other.dscp, 48);
  EXPECT_EQ(other.ecn, Ecn::kMarked);
}

TEST(WireTest, EveryOpcodeSurvivesTheRoundTripAtEveryPadding) {
  base::Random random(1);
  for (PacketOpcode opcode : KnownOpcodes()) {
    for (uint32_t length : {0, 1, 2, 3, 4, 5, 255, 256, 4093, 4096}) {
      SCOPED_TRACE(testing::Message() << "opcode " << static_cast<int>(opcode) << " payload " << length);
      Bytes payload(length);
      for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random.Next());
      const Packet sent = RandomPacket(random, opcode, payload);
      const Bytes datagram = Serialise(sent);
      EXPECT_EQ(datagram.size() % 4, 0u);
      EXPECT_LE(datagram.size(), kMaxDatagram);
      Packet received;
      ASSERT_EQ(Decode(datagram, &received), DecodeResult::kOk);
      ExpectEqual(sent, received);
    }
  }
}

TEST(WireTest, EveryTruncationIsRefusedOrIsAShorterPacketInside) {
  base::Random random(2);
  const Bytes payload(37, 0xab);
  for (PacketOpcode opcode : KnownOpcodes()) {
    const Bytes whole = Serialise(RandomPacket(random, opcode, payload));
    for (size_t length = 0; length < whole.size(); ++length) {
      SCOPED_TRACE(testing::Message() << "opcode " << static_cast<int>(opcode) << " cut to " << length);
      const Bytes cut(whole.begin(),
                      whole.begin() + static_cast<ptrdiff_t>(length));  // a sanitizer sees reads behind it
      Packet packet;
      const DecodeResult result = Decode(cut, &packet);
      if (length < kMinDatagram) {
        EXPECT_EQ(result, DecodeResult::kTooShort);
      } else if (length < HeaderLength(opcode) + kIcrcLength) {
        EXPECT_EQ(result, DecodeResult::kTruncatedHeader);
      } else if (length % 4 != 0) {
        EXPECT_EQ(result, DecodeResult::kUnalignedLength);
      } else if (result == DecodeResult::kOk) {
        EXPECT_LT(packet.payload_length(), payload.size());
      } else {
        EXPECT_EQ(result, DecodeResult::kBadPadCount);
      }
    }
  }
}

TEST(WireTest, EachDropHasItsReason) {
  base::Random random(3);
  const Bytes payload(8, 1);
  const auto result = [](const Bytes& datagram) {
    Packet packet;
    return Decode(datagram, &packet);
  };
  Bytes datagram = Serialise(RandomPacket(random, PacketOpcode::kSendOnly, payload));
  ASSERT_EQ(result(datagram), DecodeResult::kOk);

  Bytes bad = datagram;
  bad[1] |= 1;
  EXPECT_EQ(result(bad), DecodeResult::kTransportVersion);
  for (int opcode = 0; opcode < 256; ++opcode) {
    if (IsKnown(static_cast<PacketOpcode>(opcode))) continue;
    bad = datagram;
    bad[0] = static_cast<uint8_t>(opcode);
    EXPECT_EQ(result(bad), DecodeResult::kUnknownOpcode) << opcode;
  }
  bad = Serialise(RandomPacket(random, PacketOpcode::kSendOnly, {}));
  bad[1] |= 0x10;
  EXPECT_EQ(result(bad), DecodeResult::kBadPadCount);
  bad = Serialise(RandomPacket(random, PacketOpcode::kAcknowledge, {}));
  bad.insert(bad.end(), 4, 0);
  EXPECT_EQ(result(bad), DecodeResult::kUnexpectedPayload);
  bad = Serialise(RandomPacket(random, PacketOpcode::kSendOnly, Bytes(4096)));
  bad.insert(bad.end(), 4, 0);
  EXPECT_EQ(result(bad), DecodeResult::kPayloadTooLong);
}

TEST(WireTest, DecodesAnyBytesWithinTheirBounds) {
  base::Random random(4);
  uint64_t accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    Bytes datagram(random.Below(random.Chance(0.1) ? 4200 : 80));
    for (uint8_t& byte : datagram) byte = static_cast<uint8_t>(random.Next());
    if (datagram.size() > 1 && random.Chance(0.9)) {  // let most get past the first checks
      datagram[0] &= 0x1f;
      datagram[1] &= 0xf0;
    }
    Packet packet;
    if (Decode(datagram, &packet) != DecodeResult::kOk) continue;
    ++accepted;
    ASSERT_TRUE(IsKnown(packet.opcode));
    ASSERT_LE(packet.slices, 1u);
    ASSERT_LE(packet.payload_length(), kMaxMtu);
    if (packet.slices == 1) {
      ASSERT_GE(packet.payload[0].data, datagram.data() + kBthLength);
      ASSERT_LE(packet.payload[0].data + packet.payload[0].length, datagram.data() + datagram.size() - kIcrcLength);
    }
    // An accepted packet is unambiguous: encoded again, the same headers except for unused bits.
    Packet again;
    Bytes encoded = Serialise(packet);
    ASSERT_EQ(Decode(encoded, &again), DecodeResult::kOk);
    ExpectEqual(packet, again);
  }
  EXPECT_GT(accepted, 10000u);
}

TEST(WireTest, EveryResultHasAName) {
  for (uint32_t i = 0; i < kDecodeResults; ++i) EXPECT_STRNE(ToString(static_cast<DecodeResult>(i)), "?");
}

}  // namespace
}  // namespace tokamak::verbs::soft
