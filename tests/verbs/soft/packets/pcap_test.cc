// Capture files: what tshark reads out of them, and that they are whole and bounded.
#include "lib/verbs/soft/packets/pcap.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/bytes.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/fabrics/tap_fabric.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "sim/network/sim_fabric.h"
#include "sim/time/sim_loop.h"
#include "tests/support/command_output.h"

namespace tokamak::verbs::soft {
namespace {

using Bytes = std::vector<uint8_t>;
using support::OutputOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Address Parse(const std::string& text) { return Address::Parse(text).value(); }

class PcapTest : public testing::Test {
 protected:
  Bytes Contents() const {
    std::ifstream file(path, std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(file), {});
  }

  std::unique_ptr<PcapWriter> Create(const PcapOptions& options = {}) {
    return PcapWriter::Create(loop, path, options).value();
  }

  void Show(PcapWriter& writer, const Packet& packet, const Address& from, const Address& to,
            uint16_t identification = 0) {
    Bytes bytes(kMaxDatagram);
    bytes.resize(EncodeDatagram(packet, IcrcFlow(from, to), identification, bytes.data()));
    // In two pieces, cut anywhere.
    const PayloadSlice pieces[] = {{bytes.data(), 13}, {bytes.data() + 13, static_cast<uint32_t>(bytes.size() - 13)}};
    Datagram datagram;
    datagram.time = loop.Now();
    datagram.source = from;
    datagram.destination = to;
    datagram.identification = identification;
    datagram.traffic_class = TrafficClassOf(packet);
    datagram.pieces = pieces;
    writer.Show(datagram);
  }

  // One line for each packet.
  std::vector<std::string> Tshark(const std::string& arguments) const {
    std::istringstream output(
        OutputOf("HOME=" + testing::TempDir() + " tshark -n -r " + path + " " + arguments + " 2>&1"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(output, line);) {
      if (line.find("Running as user") == std::string::npos) lines.push_back(line);
    }
    return lines;
  }
  static bool HasTshark() { return !OutputOf("command -v tshark").empty(); }

  sim::Scheduler scheduler;
  sim::SimLoop loop{scheduler};
  const std::string path = testing::TempDir() + "/pcap_test.pcap";
  const Address a = Parse("10.0.0.1:4791");
  const Address b = Parse("10.0.0.2:4791");
};

std::vector<Packet> OneOfEach(const Bytes& payload) {
  std::vector<Packet> packets;
  for (int i = 0; i < 256; ++i) {
    Packet packet;
    packet.opcode = static_cast<PacketOpcode>(i);
    if (!IsKnown(packet.opcode)) continue;
    packet.destination = 0x11;
    packet.psn = static_cast<uint32_t>(i);
    packet.rkey = 0x1234;
    packet.dma_length = 100;
    packet.syndrome = 0x1f;
    if (HasDeth(packet.opcode)) packet.qkey = kManagementQkey;
    const bool alone = HeaderLength(packet.opcode) >= 40 || packet.opcode == PacketOpcode::kReadRequest ||
                       packet.opcode == PacketOpcode::kAcknowledge || HasAtomicAckEth(packet.opcode) ||
                       packet.opcode == PacketOpcode::kCongestionNotification ||
                       packet.opcode == PacketOpcode::kSelectiveNak;
    if (!alone) {
      packet.slices = 1;
      packet.payload[0] = {payload.data(), static_cast<uint32_t>(payload.size())};
    }
    packets.push_back(packet);
  }
  return packets;
}

TEST_F(PcapTest, TsharkReadsEveryOpcode) {
  if (!HasTshark()) GTEST_SKIP() << "tshark is not installed";
  const Bytes payload(101, 7);
  const std::vector<Packet> packets = OneOfEach(payload);
  PcapOptions options;
  options.epoch_nanoseconds = 1'700'000'000'123'456'789;
  std::unique_ptr<PcapWriter> writer = Create(options);
  for (size_t i = 0; i < packets.size(); ++i) {
    scheduler.RunFor(base::Nanoseconds(1));
    const bool ipv6 = i % 2 == 1;
    Show(*writer, packets[i], ipv6 ? Parse("[fd00::1]:4791") : a, ipv6 ? Parse("[fd00::2]:4791") : b, 77);
  }
  EXPECT_EQ(writer->packets_written(), packets.size());
  writer.reset();

  const std::vector<std::string> lines = Tshark(
      "-o udp.check_checksum:TRUE -o ip.check_checksum:TRUE -T fields -e frame.time_epoch -e ip.id -e "
      "infiniband.bth.opcode -e infiniband.bth.psn -e ip.checksum.status -e udp.checksum.status -e "
      "_ws.malformed -E separator=,");
  ASSERT_EQ(lines.size(), packets.size());
  for (size_t i = 0; i < packets.size(); ++i) {
    const bool ipv6 = i % 2 == 1;
    const auto opcode = std::to_string(static_cast<int>(packets[i].opcode));
    EXPECT_THAT(lines[i], StartsWith("1700000000.123456" + std::to_string(790 + i)));
    EXPECT_THAT(lines[i],
                HasSubstr(std::string(ipv6 ? ",," : ",0x004d,") + opcode + "," + opcode + (ipv6 ? ",,1," : ",1,1,")));
    EXPECT_EQ(lines[i].back(), ',') << "malformed: " << lines[i];
  }
  for (const std::string& line : Tshark("-V")) EXPECT_THAT(line, Not(HasSubstr("Malformed")));
}

TEST_F(PcapTest, TsharkReadsTheInvalidatedKey) {
  if (!HasTshark()) GTEST_SKIP() << "tshark is not installed";
  const Bytes payload(5, 7);
  std::unique_ptr<PcapWriter> writer = Create();
  for (const PacketOpcode opcode : {PacketOpcode::kSendLastWithInvalidate, PacketOpcode::kSendOnlyWithInvalidate}) {
    Packet packet;
    packet.opcode = opcode;
    packet.rkey = 0xcafef00d;
    packet.slices = 1;
    packet.payload[0] = {payload.data(), static_cast<uint32_t>(payload.size())};
    Show(*writer, packet, a, b);
  }
  writer.reset();
  EXPECT_THAT(Tshark("-T fields -e infiniband.bth.opcode -e infiniband.bth.padcnt -e infiniband.ieth -E separator=,"),
              testing::ElementsAre(HasSubstr("22,3,ca"), HasSubstr("23,3,ca")));
}

TEST_F(PcapTest, TsharkReadsDscpAndMarks) {
  if (!HasTshark()) GTEST_SKIP() << "tshark is not installed";
  std::unique_ptr<PcapWriter> writer = Create();
  Packet packet;
  packet.opcode = PacketOpcode::kCongestionNotification;
  packet.dscp = kNotificationDscp;
  Show(*writer, packet, a, b);
  packet.ecn = Ecn::kMarked;
  Show(*writer, packet, Parse("[fd00::1]:4791"), Parse("[fd00::2]:4791"));
  writer.reset();
  EXPECT_THAT(Tshark("-o ip.check_checksum:TRUE -T fields -e infiniband.bth.opcode -e ip.dsfield.dscp -e "
                     "ip.dsfield.ecn -e ip.checksum.status -e ipv6.tclass.dscp -e ipv6.tclass.ecn -E separator=,"),
              testing::ElementsAre("129,48,0,1,,", "129,,,,48,3"));
}

TEST_F(PcapTest, ASimulatedConversationBecomesAFile) {
  base::NoTrace trace;
  sim::SimFabric inner(loop, 1, {}, trace);
  std::unique_ptr<PcapWriter> writer = Create();
  TapFabric fabric(inner, *writer, TapFabric::Shows::kSent);
  int received = 0;
  std::vector<std::unique_ptr<Port>> ports;
  for (const Address& address : {a, b}) {
    ports.push_back(
        fabric.Open(loop, address, {[&](absl::Span<const Packet> packets) { received += packets.size(); }, [] {}})
            .value());
  }
  Packet packet;
  packet.peer = b;
  for (uint32_t i = 0; i < 10; ++i) {
    packet.psn = i;
    ASSERT_EQ(ports[0]->Send({&packet, 1}), 1u);
  }
  scheduler.RunUntilIdle();
  EXPECT_EQ(received, 10);
  EXPECT_EQ(writer->packets_written(), 10u);
  if (!HasTshark()) return;
  const std::vector<std::string> lines = Tshark("-T fields -e ip.src -e ip.dst -e infiniband.bth.psn -E separator=,");
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[9], "10.0.0.1,10.0.0.2,9");
}

TEST_F(PcapTest, TheFileIsWholeSoonAfterEachPacket) {
  const std::unique_ptr<PcapWriter> writer = Create();
  EXPECT_EQ(Contents().size(), 24u);
  Show(*writer, Packet(), a, b);
  Show(*writer, Packet(), a, b);
  EXPECT_EQ(Contents().size(), 24u);
  scheduler.RunUntilIdle();
  EXPECT_EQ((loop.Now() - base::Time()), PcapWriter::kFlushDelay);
  const size_t record = 16 + 20 + 8 + 20;
  const Bytes contents = Contents();
  ASSERT_EQ(contents.size(), 24 + 2 * record);
  EXPECT_EQ(base::LoadLittle<uint32_t>(&contents[0]), 0xa1b23c4d);
  EXPECT_EQ(base::LoadLittle<uint32_t>(&contents[24 + 8]), record - 16);
  EXPECT_EQ(contents[24 + 16], 0x45);
}

TEST_F(PcapTest, TheFileIsNeverLongerThanAllowed) {
  PcapOptions options;
  options.max_file_bytes = 1000;
  std::unique_ptr<PcapWriter> writer = Create(options);
  for (int i = 0; i < 100; ++i) Show(*writer, Packet(), a, b);
  EXPECT_EQ(writer->packets_written(), 15u);
  EXPECT_EQ(writer->packets_left_out(), 85u);
  writer.reset();
  EXPECT_EQ(Contents().size(), 24u + 15 * 64);
}

TEST_F(PcapTest, LongPacketsAreCutAtTheGivenLength) {
  PcapOptions options;
  options.max_packet_bytes = 100;
  std::unique_ptr<PcapWriter> writer = Create(options);
  const Bytes payload(4096);
  Packet packet;
  packet.opcode = PacketOpcode::kSendOnly;
  packet.slices = 1;
  packet.payload[0] = {payload.data(), 4096};
  Show(*writer, packet, a, b);
  writer.reset();
  const Bytes contents = Contents();
  ASSERT_EQ(contents.size(), 24u + 16 + 100);
  EXPECT_EQ(base::LoadLittle<uint32_t>(&contents[24 + 8]), 100u);
  EXPECT_EQ(base::LoadLittle<uint32_t>(&contents[24 + 12]), 28u + 12 + 4096 + 4);
}

TEST_F(PcapTest, AFileThatCannotBeWrittenIsAnError) {
  EXPECT_EQ(PcapWriter::Create(loop, "/nonexistent/file.pcap").status().code(), absl::StatusCode::kUnavailable);
  const auto full = PcapWriter::Create(loop, "/dev/full");
  EXPECT_EQ(full.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tokamak::verbs::soft
