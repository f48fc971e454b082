// A request's packets, each made from its number alone, and the bytes of answers.
#include "lib/verbs/soft/rc/request_packets.h"

#include <cstring>
#include <string>

#include "lib/verbs/soft/rc/read_pieces.h"
#include "lib/verbs/soft/rc/started_requests.h"
#include "tests/verbs/soft/one_core.h"

namespace tokamak::verbs::soft {
namespace {

class RequestPacketsTest : public OneCore {
 protected:
  RequestPacketsTest() { requests_.Start(kFirst); }

  SendSlot& PostAndStart(Opcode opcode, size_t offset, uint32_t length) {
    SendSlot& slot = Post(opcode, 1, offset, length);
    EXPECT_TRUE(requests_.StartNext());
    return slot;
  }
  static std::string PayloadOf(const Packet& packet) {
    std::string payload;
    for (const PayloadSlice& slice : packet.pieces()) {
      payload.append(reinterpret_cast<const char*>(slice.data), slice.length);
    }
    return payload;
  }
  static Packet AnswerWith(const std::string& bytes) {
    Packet packet;
    packet.slices = 1;
    packet.payload[0] = {reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<uint32_t>(bytes.size())};
    return packet;
  }

  StartedRequests requests_{nic_state_, core_};
  RequestPackets packets_{nic_state_, core_};
  Share share_;
};

TEST_F(RequestPacketsTest, APacketIsMadeFromItsNumberHoweverOften) {
  PostAndStart(Opcode::kWrite, 1000, 2 * kMtu + 10);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(PayloadOf(packets_.AddData(0, kFirst + 1, &share_)), Bytes(1000 + kMtu, kMtu));
    const Packet& last = packets_.AddData(0, kFirst + 2, &share_);
    EXPECT_EQ(PayloadOf(last), Bytes(1000 + 2 * kMtu, 10));
    EXPECT_EQ(last.opcode, PacketOpcode::kWriteLast);
    EXPECT_EQ(last.psn, ToPsn(kFirst + 2));
    EXPECT_EQ(last.destination, kPeerNumber);
  }
  EXPECT_EQ(core_.counters.bytes_sent, 2 * (kMtu + 10u));
  EXPECT_EQ(share_.packets, Share().packets - 4);
}

TEST_F(RequestPacketsTest, AnEmptyMessageIsOnePacketWithoutBytes) {
  SendSlot& slot = PostAndStart(Opcode::kSend, 0, 0);
  slot.solicited = true;
  EXPECT_EQ(packets_.Length(slot, kFirst), 0u);
  const Packet& packet = packets_.AddData(0, kFirst, &share_);
  EXPECT_EQ(packet.opcode, PacketOpcode::kSendOnly);
  EXPECT_EQ(packet.payload_length(), 0u);
  EXPECT_TRUE(packet.solicited);
}

TEST_F(RequestPacketsTest, MemoryOfARevokedKeyIsNotRead) {
  PostAndStart(Opcode::kWrite, 0, kMtu);
  EXPECT_TRUE(packets_.MayAdd(0, kFirst));
  nic_state_.keys.Remove(key_);
  EXPECT_FALSE(packets_.MayAdd(0, kFirst));
}

TEST_F(RequestPacketsTest, AReadAsksForAPieceAtItsPlace) {
  SendSlot& slot = PostAndStart(Opcode::kRead, 0, 5 * kMtu + 1);
  slot.piece = 4;
  EXPECT_EQ(ReadPieces::Left(slot, kFirst), 4u);
  EXPECT_EQ(ReadPieces::Left(slot, kFirst + 3), 1u) << "what is left of the piece";
  EXPECT_EQ(ReadPieces::Left(slot, kFirst + 4), 2u) << "what is left of the READ";
  packets_.AddRead(slot, kFirst + 4, packets_.Length(slot, kFirst + 4, 2), &share_);
  const Packet& packet = nic_state_.outbox.waiting().back();
  EXPECT_EQ(packet.opcode, PacketOpcode::kReadRequest);
  EXPECT_EQ(packet.remote_address, slot.remote_address + 4 * kMtu);
  EXPECT_EQ(packet.dma_length, kMtu + 1u);
  EXPECT_TRUE(packet.ack_request);
}

TEST_F(RequestPacketsTest, AnAtomicCarriesItsOperands) {
  SendSlot& slot = PostAndStart(Opcode::kCompareSwap, 0, 8);
  slot.compare = 5;
  slot.swap_or_add = 6;
  packets_.AddAtomic(slot, kFirst, &share_);
  const Packet& packet = nic_state_.outbox.waiting().back();
  EXPECT_EQ(packet.opcode, PacketOpcode::kCompareSwap);
  EXPECT_EQ(packet.compare, 5u);
  EXPECT_EQ(packet.swap_or_add, 6u);
}

TEST_F(RequestPacketsTest, DataOfAReadLandsAtItsPlace) {
  const SendSlot& slot = PostAndStart(Opcode::kRead, 100, kMtu + 3);
  EXPECT_TRUE(packets_.PlaceData(slot, kFirst + 1, AnswerWith("abc")));
  EXPECT_EQ(Bytes(100 + kMtu, 3), "abc");
  nic_state_.keys.Remove(key_);
  EXPECT_FALSE(packets_.PlaceData(slot, kFirst + 1, AnswerWith("xyz")));
  EXPECT_EQ(Bytes(100 + kMtu, 3), "abc");
}

TEST_F(RequestPacketsTest, TheResultOfAnAtomicIsWrittenIfItsKeyAllowsThat) {
  const SendSlot& slot = PostAndStart(Opcode::kFetchAdd, 64, 8);
  Packet answer;
  answer.original = 0x1122334455667788;
  EXPECT_TRUE(packets_.PlaceResult(slot, answer));
  uint64_t written = 0;
  std::memcpy(&written, memory_.data() + 64, sizeof(written));
  EXPECT_EQ(written, answer.original);
  nic_state_.keys.Remove(key_);
  EXPECT_FALSE(packets_.PlaceResult(slot, answer));
}

TEST(ReadPiecesTest, SeveralPiecesFillTheSmallerOfBothWindows) {
  constexpr uint32_t kPacket = 1024;
  EXPECT_EQ(ReadPieces::Size(400, UINT64_MAX, kPacket), 100u);
  EXPECT_EQ(ReadPieces::Size(400, 80 * kPacket, kPacket), 20u);
  EXPECT_EQ(ReadPieces::Size(1 << 20, UINT64_MAX, kPacket), ReadPieces::kMostBytes / kPacket);
  EXPECT_EQ(ReadPieces::Size(32, UINT64_MAX, kPacket), ReadPieces::kLeast);
  EXPECT_EQ(ReadPieces::Size(3, UINT64_MAX, kPacket), 3u);
  EXPECT_EQ(ReadPieces::Size(3, 1, kPacket), 1u) << "at least one packet";
}

}  // namespace
}  // namespace tokamak::verbs::soft
