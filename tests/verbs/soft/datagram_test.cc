// A datagram queue pair, packet by packet: packets that leave and their completions, packets that
// may come in; any packet is harmless and counted.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "lib/base/random.h"
#include "lib/verbs/datagrams.h"
#include "lib/verbs/soft/ud/multicast_groups.h"
#include "lib/verbs/soft/ud/route_header.h"
#include "tests/verbs/soft/accounted.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Op = PacketOpcode;

class DatagramTest : public OneNic {
 protected:
  static constexpr uint32_t kQkey = 0x1111;
  static constexpr uint32_t kTheirQkey = 0x2222;

  // Beside the connected queue pair.
  void OpenDatagrams() {
    Open();
    datagrams_ = MakeDatagrams();
    handle_ = MakeHandle({peer_});
  }

  std::unique_ptr<DatagramQueuePair> MakeDatagrams() {
    DatagramQueuePairOptions options;
    options.send_queue = options.receive_queue = completions_.get();
    options.max_sges = 2;
    options.max_inline = 64;
    options.qkey = kQkey;
    auto made = *device_->datagrams()->CreateQueuePair(*domain_, options);
    DatagramAttributes attributes;
    attributes.send_psn = kFirstSent;
    EXPECT_TRUE(made->Modify(QueuePairState::kReadyToReceive).ok());
    EXPECT_TRUE(made->Modify(QueuePairState::kReadyToSend, attributes).ok());
    return made;
  }

  std::unique_ptr<AddressHandle> MakeHandle(const DatagramAddress& address) {
    return *device_->datagrams()->CreateAddressHandle(*domain_, address);
  }

  void PostDatagram(uint64_t id, const Sge& sge, uint32_t qkey = kTheirQkey) {
    DatagramRequest request;
    request.id = id;
    request.flags = kSignaled;
    request.sges = absl::MakeConstSpan(&sge, 1);
    request.to = handle_.get();
    request.queue_pair_number = kPeerNumber;
    request.qkey = qkey;
    const PostResult result = datagrams_->PostSend(absl::MakeConstSpan(&request, 1));
    ASSERT_TRUE(result.ok()) << result.status;
  }
  void PostSlot(uint64_t id, const Sge& sge) {
    const ReceiveRequest request{id, absl::MakeConstSpan(&sge, 1)};
    ASSERT_TRUE(datagrams_->PostReceive(absl::MakeConstSpan(&request, 1)).ok());
  }

  Packet Message(absl::Span<const uint8_t> payload, Op opcode = Op::kDatagramSendOnly) const {
    Packet packet;
    packet.opcode = opcode;
    packet.destination = datagrams_->number();
    packet.psn = 77;
    packet.qkey = kQkey;
    packet.source_queue_pair = kPeerNumber;
    packet.peer = peer_;
    return With(packet, payload);
  }

  QueuePairCounters datagram_counters() const { return *device_->queue_pair_counters(datagrams_->number()); }

  std::unique_ptr<AddressHandle> handle_;
  std::unique_ptr<DatagramQueuePair> datagrams_;
};

TEST_F(DatagramTest, ADatagramLeavesAsItsRequestSays) {
  OpenDatagrams();
  const auto marked = MakeHandle({peer_, 48 << 2 | 2});
  DatagramRequest request;
  const Sge pieces[] = {Piece(0, 5), Piece(100, 3)};
  request.sges = pieces;
  request.to = marked.get();
  request.queue_pair_number = 0xfedcba;
  request.qkey = kTheirQkey;
  request.flags = kSolicited;
  request.immediate = 0xcafef00d;
  ASSERT_TRUE(datagrams_->PostSend(absl::MakeConstSpan(&request, 1)).ok());
  const std::vector<Sent> sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  const Packet& packet = sent[0].packet;
  EXPECT_EQ(packet.opcode, Op::kDatagramSendOnlyWithImm);
  EXPECT_EQ(packet.destination, 0xfedcbau);
  EXPECT_EQ(packet.psn, kFirstSent);
  EXPECT_EQ(packet.qkey, kTheirQkey);
  EXPECT_EQ(packet.source_queue_pair, datagrams_->number());
  EXPECT_EQ(packet.immediate, 0xcafef00du);
  EXPECT_EQ(packet.peer, peer_);
  EXPECT_EQ(packet.dscp, 48);
  EXPECT_EQ(packet.ecn, Ecn::kCapable0);
  EXPECT_TRUE(packet.solicited);
  EXPECT_FALSE(packet.ack_request);
  EXPECT_EQ(sent[0].payload, std::string(memory_.begin(), memory_.begin() + 5) +
                                 std::string(memory_.begin() + 100, memory_.begin() + 103));
  EXPECT_THAT(Poll(), IsEmpty()) << "it was not signaled";
}

TEST_F(DatagramTest, EachMessageHasTheNextPsn) {
  OpenDatagrams();
  for (uint64_t i = 0; i < 4; ++i) PostDatagram(i, Piece(0, 8));
  EXPECT_THAT(Psns(TakeSent()), ElementsAre(0xfffffe, 0xffffff, 0, 1));
}

TEST_F(DatagramTest, AControlledQkeyIsReplacedByTheSendersOwn) {
  OpenDatagrams();
  PostDatagram(1, Piece(0, 8), kControlledQkey | 5);
  EXPECT_EQ(TakeSent()[0].packet.qkey, kQkey);
}

TEST_F(DatagramTest, ARequestIsCompleteWhenThePortHasTakenIt) {
  OpenDatagrams();
  fabric_.room = 1;
  for (uint64_t i = 0; i < 3; ++i) PostDatagram(i, Piece(0, 8));
  EXPECT_EQ(TakeSent().size(), 1u);
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(std::pair(uint64_t{0}, CompletionStatus::kSuccess)));
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_EQ(TakeSent().size(), 2u);
  EXPECT_EQ(Poll().size(), 2u);
}

TEST_F(DatagramTest, ARequestTakenOutOfTheOutboxIsCompleteAtOnce) {
  OpenDatagrams();
  auto other = *domain_->RegisterMemory(absl::MakeSpan(memory_).first(64), kLocalRead);
  fabric_.room = 0;
  PostDatagram(1, {other->address(), 64, other->lkey()});
  PostDatagram(2, Piece(0, 8));
  EXPECT_THAT(TakeSent(), IsEmpty());
  EXPECT_THAT(Poll(), IsEmpty());
  completions_->RequestNotify();
  other.reset();
  Run();
  EXPECT_EQ(events_, 1);
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(std::pair(uint64_t{1}, CompletionStatus::kSuccess)));
  EXPECT_EQ(device_->counters().dropped_before_send, 1u);
}

TEST_F(DatagramTest, AnEndTakesWaitingDatagramsOutOfTheOutbox) {
  OpenDatagrams();
  fabric_.room = 0;
  PostDatagram(1, Piece(0, 8));
  PostDatagram(2, Piece(0, 8));
  Run();
  EXPECT_TRUE(datagrams_->Modify(QueuePairState::kError).ok());
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(std::pair(uint64_t{1}, CompletionStatus::kFlushed),
                                            std::pair(uint64_t{2}, CompletionStatus::kFlushed)));
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_THAT(TakeSent(), IsEmpty());
  EXPECT_EQ(device_->counters().dropped_before_send, 2u);
}

TEST_F(DatagramTest, ARequestWithoutItsKeyWaitsForEarlierOnes) {
  OpenDatagrams();
  fabric_.room = 0;
  PostDatagram(1, Piece(0, 8));
  PostDatagram(2, {memory_.data(), 8, 0});
  Run();
  EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_EQ(datagrams_->state(), QueuePairState::kReadyToSend);
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_EQ(TakeSent().size(), 1u);
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(std::pair(uint64_t{1}, CompletionStatus::kSuccess),
                                            std::pair(uint64_t{2}, CompletionStatus::kLocalProtection)));
  EXPECT_EQ(datagrams_->state(), QueuePairState::kError);
}

TEST_F(DatagramTest, ADatagramLongerThanThePathMtuIsCountedAndNotSent) {
  OpenDatagrams();
  PostDatagram(1, Piece(0, kMaxMtu));
  PostDatagram(2, Piece(0, kMaxMtu + 1));
  EXPECT_EQ(TakeSent().size(), 1u);
  EXPECT_EQ(Poll().size(), 2u);
  EXPECT_EQ(datagram_counters().datagrams_not_sent, 1u);
}

TEST_F(DatagramTest, DatagramsAndConnectionsTakeTurns) {
  OpenDatagrams();
  fabric_.says_room = true;
  fabric_.room = 0;
  for (uint64_t i = 0; i < 60; ++i) PostDatagram(i, Piece(0, 8));
  for (uint64_t i = 0; i < 60; ++i) Post(Opcode::kSend, 100 + i, Piece(0, 8));
  Run();
  fabric_.room = 80;
  fabric_.Ready();
  const std::vector<Op> opcodes = Opcodes(TakeSent());
  EXPECT_GE(std::count(opcodes.begin(), opcodes.end(), Op::kSendOnly), 32);
  EXPECT_GE(std::count(opcodes.begin(), opcodes.end(), Op::kDatagramSendOnly), 32);
}

TEST_F(DatagramTest, AMessageLiesBehindTheIpv4HeaderOfItsPacket) {
  OpenDatagrams();
  PostSlot(1, Piece(1000, 200));
  const auto bytes = Bytes(5, 9);
  Packet message = Message(bytes);
  SetTrafficClass(0x62, &message);
  Arrive({message});
  Run();
  const std::vector<Completion> done = Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].byte_count, 45u);
  EXPECT_EQ(done[0].source_queue_pair, kPeerNumber);
  // 20 zeros; version, class, length 20 + 8 + 12 + 8 + 8 + 4, DF, TTL 64, UDP, checksum, 10.0.0.2
  // to 10.0.0.1.
  EXPECT_EQ(absl::BytesToHexString({reinterpret_cast<const char*>(&memory_[1000]), 40}),
            "0000000000000000000000000000000000000000"
            "4562003c000040004011264d0a0000020a000001");
  EXPECT_TRUE(MemoryHolds(1040, bytes));
}

TEST_F(DatagramTest, TheRouteHeaderOfIpv6IsItsHeader) {
  Packet packet;
  packet.opcode = Op::kDatagramSendOnlyWithImm;
  packet.peer = *Address::Parse("[fd00::2]:4791");
  packet.group = Address::Parse("[ff15::7]:0")->ip;
  SetTrafficClass(0xb9, &packet);
  uint8_t header[kGlobalRouteHeader];
  WriteRouteHeader(packet, *Address::Parse("[fd00::1]:4791"), header);
  EXPECT_EQ(absl::BytesToHexString({reinterpret_cast<const char*>(header), 40}),
            "6b90000000241140"
            "fd000000000000000000000000000002"
            "ff150000000000000000000000000007");
}

TEST_F(DatagramTest, AForeignDatagramIsDroppedAndCounted) {
  OpenDatagrams();
  PostSlot(1, Piece(0, 100));
  const auto bytes = Bytes(61, 9);
  Packet qkey = Message(bytes), connected = Message(bytes), answer = Message({}), group = Message(bytes),
         nobody = Message(bytes), mad = Message(bytes), long_one = Message(bytes), notification = Message({});
  qkey.qkey ^= 1;
  connected.opcode = Op::kSendOnly;
  answer.opcode = Op::kAcknowledge;
  group.group = Address::Parse("239.1.1.1")->ip;  // by its own number
  nobody.destination = kMulticastQueuePair;       // at its own address
  mad.group = group.group;
  mad.destination = kManagementQueuePair;
  mad.qkey = kManagementQkey;
  notification.opcode = Op::kCongestionNotification;
  const std::vector<uint8_t> before = memory_;
  Arrive({qkey, connected, answer, group, nobody, mad, long_one, notification});
  Run();
  EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_EQ(memory_, before);
  const DeviceCounters counters = device_->counters();
  EXPECT_EQ(counters.dropped_wrong_qkey, 1u);
  EXPECT_EQ(counters.dropped_unknown_opcode, 3u);
  EXPECT_EQ(counters.dropped_unknown_group, 2u);
  EXPECT_EQ(datagram_counters().datagrams_too_long, 1u);
  EXPECT_EQ(datagram_counters().notifications_received, 1u);
  Arrive({Message(Bytes(60, 9)), Message({})});
  Run();
  EXPECT_EQ(Poll().size(), 1u);
  EXPECT_EQ(datagram_counters().datagrams_unreceived, 1u);
  EXPECT_EQ(Arrived(device_->counters()), 10u);
  EXPECT_EQ(Accounted(device_->counters().queue_pairs), device_->counters().queue_pairs.packets_received);
}

TEST_F(DatagramTest, ADatagramOfAnySenderIsAccepted) {
  OpenDatagrams();
  PostSlot(1, Piece(0, 100));
  const auto payload = Bytes(4, 1);
  Packet message = Message(payload);
  message.peer = *Address::Parse("10.99.0.1:555");
  Arrive({message});
  Run();
  EXPECT_EQ(Poll().size(), 1u);
}

TEST_F(DatagramTest, EveryPacketIsHarmlessAndCounted) {
  OpenDatagrams();
  base::Random random(7);
  const auto payload = Bytes(5000, 1);
  constexpr uint64_t kPackets = 50'000;
  for (uint64_t i = 0; i < kPackets; ++i) {
    if (datagrams_->state() == QueuePairState::kError) {
      datagrams_ = MakeDatagrams();
      Poll();
    }
    // Two pieces, of which one may have no key, in the first half of the memory.
    if (random.Chance(0.3)) {
      Sge sges[2] = {Piece(random.Below(1000), 100), Piece(2000, random.Below(5000))};
      if (random.Chance(0.01)) sges[0].lkey = 0;
      const ReceiveRequest request{i, sges};
      datagrams_->PostReceive(absl::MakeConstSpan(&request, 1)).status.IgnoreError();
    }
    Packet packet = Message({}, random.Chance(0.7) ? Op::kDatagramSendOnly : Op::kDatagramSendOnlyWithImm);
    if (random.Chance(0.1)) packet.opcode = static_cast<Op>(random.Below(256));
    if (random.Chance(0.1)) packet.qkey = static_cast<uint32_t>(random.Next());
    if (random.Chance(0.05)) packet.destination = static_cast<uint32_t>(random.Below(4)) * 0x555555;
    if (random.Chance(0.05)) packet.group = Address::Parse("239.1.1.1")->ip;
    packet.ecn = static_cast<Ecn>(random.Below(4));
    // Half of them short: a receive that is too short stays and holds up those behind it.
    const size_t longest = random.Chance(0.5) ? 60 : payload.size();
    Arrive({With(packet, absl::MakeConstSpan(payload).first(random.Below(longest)))});
    if (i % 16 == 0) Poll();
  }
  const DeviceCounters counters = device_->counters();
  EXPECT_EQ(Arrived(counters), kPackets);
  EXPECT_EQ(Accounted(counters.queue_pairs), counters.queue_pairs.packets_received);
  EXPECT_GT(counters.queue_pairs.requests_executed, 1000u);
  for (size_t i = kMemory / 2; i < kMemory; ++i) ASSERT_EQ(memory_[i], static_cast<uint8_t>(i * 7 + i / 256));
}

TEST(MulticastGroupsTest, GroupsAndMembersAreBounded) {
  MulticastGroups groups;
  const auto queue_pair = [](uintptr_t n) -> DatagramCore& { return *reinterpret_cast<DatagramCore*>(n * 64); };
  MulticastGroups::Ip group{};
  for (size_t i = 0; i < MulticastGroups::kMaxMembers; ++i) {
    EXPECT_TRUE(groups.MayAdd(group).ok());
    groups.Add(group, queue_pair(1 + i));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(groups.MayAdd(group)));
  for (size_t i = 1; i < MulticastGroups::kMaxGroups; ++i) {
    group[14] = static_cast<uint8_t>(i >> 8);
    group[15] = static_cast<uint8_t>(i);
    EXPECT_TRUE(groups.MayAdd(group).ok());
    groups.Add(group, queue_pair(1));
  }
  group[13] = 1;
  EXPECT_TRUE(absl::IsResourceExhausted(groups.MayAdd(group)));
  group[13] = 0;
  EXPECT_TRUE(groups.Has(group, queue_pair(1)));
  EXPECT_TRUE(groups.Remove(group, queue_pair(1)));
  EXPECT_FALSE(groups.Remove(group, queue_pair(1)));
  EXPECT_EQ(groups.Find(group), nullptr);
}

}  // namespace
}  // namespace tokamak::verbs::soft
