// The ring that two processes share: what is written is read, whatever lengths, and whatever the
// other side writes is refused, not believed.
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/os/shared_memory.h"
#include "lib/verbs/soft/shm/packet_record.h"
#include "lib/verbs/soft/shm/ring.h"

namespace tokamak::verbs::soft {
namespace {

using Bytes = std::vector<uint8_t>;

class ShmRingTest : public testing::Test {
 protected:
  ShmRingTest()
      : memory(os::SharedMemory::Create("ring-of-a-test", kRingMemory).value()), writer(Attach()), reader(Attach()) {}

  os::MemoryMapping Attach() { return os::SharedMemory::Attach(memory.descriptor(), kRingMemory, true).value(); }

  bool Write(const Bytes& bytes) {
    uint8_t* const to = writer.Reserve(static_cast<uint32_t>(bytes.size()));
    if (to == nullptr) return false;
    std::memcpy(to, bytes.data(), bytes.size());
    writer.Add(static_cast<uint32_t>(bytes.size()));
    return true;
  }

  Bytes RandomBytes() {
    Bytes bytes(1 + random.Below(5000));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
    return bytes;
  }

  RingControl& control() { return *reinterpret_cast<RingControl*>(memory.bytes().data()); }

  base::Random random{7};
  os::SharedMemory memory;
  RingWriter writer;
  RingReader reader;
};

TEST_F(ShmRingTest, RecordsAreReadInOrderManyTimesRound) {
  std::deque<Bytes> expected;
  uint64_t written = 0;
  while (written < 20 * uint64_t{kRingBytes} || !expected.empty()) {
    for (uint64_t i = random.Below(40); i > 0 && written < 20 * uint64_t{kRingBytes}; --i) {
      Bytes bytes = RandomBytes();
      if (!Write(bytes)) break;
      written += bytes.size();
      expected.push_back(std::move(bytes));
    }
    writer.Publish();
    for (uint64_t i = random.Below(40); i > 0 && !expected.empty(); --i) {
      const absl::Span<const uint8_t> record = reader.Next();
      ASSERT_GE(record.size(), expected.front().size());
      ASSERT_LT(record.size(), expected.front().size() + 8);
      ASSERT_EQ(std::memcmp(record.data(), expected.front().data(), expected.front().size()), 0);
      expected.pop_front();
    }
    reader.Release();
  }
  EXPECT_TRUE(reader.Next().empty());
  EXPECT_FALSE(reader.broken());
}

TEST_F(ShmRingTest, NothingIsReadBeforeItIsPublished) {
  ASSERT_TRUE(Write({1, 2, 3}));
  EXPECT_TRUE(reader.Next().empty());
  writer.Publish();
  EXPECT_FALSE(reader.Next().empty());
}

TEST_F(ShmRingTest, AReaderThatWaitsIsWokenOnce) {
  ASSERT_TRUE(Write({1}));
  EXPECT_FALSE(writer.Publish()) << "it does not wait";
  reader.Arm();
  ASSERT_TRUE(Write({2}));
  EXPECT_TRUE(writer.Publish());
  ASSERT_TRUE(Write({3}));
  EXPECT_FALSE(writer.Publish()) << "it has been woken";
}

TEST_F(ShmRingTest, AWriterThatWaitsIsWokenWhenHalfOfTheRingIsFree) {
  while (Write(Bytes(4096))) {
  }
  writer.Publish();
  ASSERT_TRUE(writer.WaitForRoom());
  uint64_t read = 0;
  bool woken = false;
  while (!woken) {
    const absl::Span<const uint8_t> record = reader.Next();
    ASSERT_FALSE(record.empty()) << "the ring is empty, and nobody was woken";
    read += record.size();
    woken = reader.Release();
  }
  EXPECT_GE(read, kRingBytes / 2 - 8192);
  EXPECT_FALSE(writer.WaitForRoom());
  EXPECT_TRUE(Write(Bytes(4096)));
}

// Whatever the memory holds, what is read lies in the ring, and it ends.
TEST_F(ShmRingTest, AWriterThatLiesIsNotFollowedOutOfTheRing) {
  for (int round = 0; round < 2000; ++round) {
    RingReader fresh(Attach());
    for (size_t i = 0; i < 4096; ++i) {
      memory.bytes()[kRingControlBytes + i] = random.Chance(0.8) ? 0 : static_cast<uint8_t>(random.Next());
    }
    if (random.Chance(0.5)) {  // a first record that is right, and then anything
      const uint32_t length = 8 * static_cast<uint32_t>(1 + random.Below(100));
      std::memcpy(memory.bytes().data() + kRingControlBytes, &length, sizeof(length));
    }
    control().written.store(random.Chance(0.9) ? random.Below(2 * kRingBytes) : random.Next());
    uint64_t sum = 0;
    for (;;) {
      const absl::Span<const uint8_t> record = fresh.Next();
      if (record.empty()) break;
      sum += record.size();
      ASSERT_LE(sum, kRingBytes);
      Packet packet;
      if (!ReadRecord(record, &packet)) continue;
      ASSERT_LE(packet.payload_length(), record.size());
    }
  }
}

TEST_F(ShmRingTest, AWriterThatGoesOnWithoutRoomBreaksTheRing) {
  ASSERT_TRUE(Write(Bytes(4096)));
  writer.Publish();
  ASSERT_FALSE(reader.Next().empty());
  control().written.store(4096 + kRingBytes);
  EXPECT_TRUE(reader.Next().empty());
  EXPECT_TRUE(reader.broken()) << "nothing was released yet";
}

TEST_F(ShmRingTest, BytesAfterTheEndAreNotRead) {
  ASSERT_TRUE(Write(Bytes(8)));
  writer.Publish();
  reader.End();
  ASSERT_TRUE(Write(Bytes(8)));
  writer.Publish();
  EXPECT_FALSE(reader.Next().empty()) << "what it had published before";
  EXPECT_TRUE(reader.Next().empty());
  reader.Release();
  EXPECT_TRUE(reader.Next().empty());
}

TEST_F(ShmRingTest, AReaderThatLiesGetsNothing) {
  ASSERT_TRUE(Write(Bytes(4096)));
  writer.Publish();
  while (Write(Bytes(4096))) {
  }
  control().read.store(UINT64_MAX / 2);
  EXPECT_FALSE(Write(Bytes(4096)));
}

TEST(PacketRecordTest, APacketComesBackAsItWas) {
  base::Random random(3);
  static constexpr PacketOpcode kOpcodes[] = {PacketOpcode::kSendOnly, PacketOpcode::kWriteFirst,
                                              PacketOpcode::kAcknowledge, PacketOpcode::kDatagramSendOnly,
                                              PacketOpcode::kReadRequest};
  for (int round = 0; round < 1000; ++round) {
    Packet packet;
    packet.opcode = kOpcodes[random.Below(5)];
    packet.destination = static_cast<uint32_t>(random.Below(1 << 24));
    packet.psn = static_cast<uint32_t>(random.Below(1 << 24));
    packet.corrupt = random.Chance(0.1);
    packet.dscp = static_cast<uint8_t>(random.Below(64));
    packet.ecn = static_cast<Ecn>(random.Below(4));
    if (random.Chance(0.2)) packet.group[3] = 5;
    Bytes payload(random.Below(4097));
    for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random.Next());
    const bool carries = packet.opcode != PacketOpcode::kAcknowledge && packet.opcode != PacketOpcode::kReadRequest;
    if (!carries) payload.clear();
    const size_t cut = payload.size() / 3;
    if (!payload.empty()) {
      packet.slices = 2;
      packet.payload[0] = {payload.data(), static_cast<uint32_t>(cut)};
      packet.payload[1] = {payload.data() + cut, static_cast<uint32_t>(payload.size() - cut)};
    }
    const Address source = Address::Parse("10.0.0.7:4791").value();
    Bytes record(RecordLength(packet));
    WriteRecord(packet, source, record.data());
    record.resize((record.size() + 7) & ~size_t{7});

    Packet read;
    ASSERT_TRUE(ReadRecord(record, &read));
    EXPECT_EQ(read.opcode, packet.opcode);
    EXPECT_EQ(read.destination, packet.destination);
    EXPECT_EQ(read.psn, packet.psn);
    EXPECT_EQ(read.corrupt, packet.corrupt);
    EXPECT_EQ(TrafficClassOf(read), TrafficClassOf(packet));
    EXPECT_EQ(read.group, packet.group);
    EXPECT_EQ(read.peer, source);
    ASSERT_EQ(read.payload_length(), payload.size());
    if (payload.empty()) continue;
    EXPECT_EQ(std::memcmp(read.payload[0].data, payload.data(), payload.size()), 0);
  }
}

}  // namespace
}  // namespace tokamak::verbs::soft
