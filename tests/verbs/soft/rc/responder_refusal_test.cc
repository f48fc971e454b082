// A responder's refusals and their NAKs: a peer's mistake or malice ends one connection and nothing
// else.
#include <sys/mman.h>

#include "gmock/gmock.h"
#include "lib/base/random.h"
#include "lib/verbs/soft/rc/responder.h"
#include "tests/verbs/soft/accounted.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Op = PacketOpcode;
using Status = CompletionStatus;

class ResponderRefusalTest : public OneNic {
 protected:
  // `packets` arrive at a fresh queue pair; the last is answered with `syndrome` and the queue pair
  // is in Error and mute.
  void ExpectRefused(std::initializer_list<Packet> packets, uint8_t syndrome) {
    SCOPED_TRACE(testing::Message() << "opcode " << static_cast<int>((packets.end() - 1)->opcode));
    queue_pair_ = MakeQueuePair();
    Walk(*queue_pair_);
    PostReceive(77, Piece(0, 100));
    TakeSent();
    std::vector<Packet> addressed(packets);
    for (Packet& packet : addressed) packet.destination = queue_pair_->number();
    fabric_.Deliver(addressed);
    const auto sent = TakeSent();
    ASSERT_FALSE(sent.empty());
    EXPECT_EQ(sent.back().packet.syndrome, syndrome);
    EXPECT_EQ(sent.back().packet.psn, addressed.back().psn);
    EXPECT_EQ(queue_pair_->state(), QueuePairState::kError);
    const Packet next = Request(Op::kSendOnly, 50);
    fabric_.Deliver({&next, 1});
    EXPECT_THAT(TakeSent(), IsEmpty());
  }
  Packet Write(Op opcode, uint32_t index, uint32_t size, uint32_t total) {
    payload_ = Bytes(size, 1);
    return To(Request(opcode, index, payload_), Remote(5000), region_->rkey(), total);
  }

  std::vector<uint8_t> payload_;
  const std::vector<uint8_t> full_ = Bytes(kMtu, 1);
};

TEST_F(ResponderRefusalTest, MalformedMessagesAreRefused) {
  Open();
  ExpectRefused({Request(Op::kSendMiddle, 0, full_)}, kInvalidRequestNak);
  ExpectRefused({Request(Op::kSendLast, 0, full_)}, kInvalidRequestNak);
  ExpectRefused({Request(Op::kSendFirst, 0, absl::MakeConstSpan(full_).first(100))}, kInvalidRequestNak);
  ExpectRefused({Write(Op::kWriteFirst, 0, kMtu, 3 * kMtu), Request(Op::kSendMiddle, 1, full_)}, kInvalidRequestNak);
  ExpectRefused({Write(Op::kWriteFirst, 0, kMtu, 3 * kMtu), Request(Op::kReadRequest, 1)}, kInvalidRequestNak);
  ExpectRefused({Write(Op::kWriteFirst, 0, kMtu, 3 * kMtu), Request(Op::kWriteLast, 1)}, kInvalidRequestNak);
  ExpectRefused({Write(Op::kWriteFirst, 0, kMtu, kMtu)}, kInvalidRequestNak);
  ExpectRefused({Write(Op::kWriteFirst, 0, kMtu, kMtu + 5), Request(Op::kWriteMiddle, 1, full_)}, kInvalidRequestNak);
  ExpectRefused({Write(Op::kWriteFirst, 0, kMtu, kMtu + 5), Request(Op::kWriteLast, 1, full_)}, kInvalidRequestNak);
  ExpectRefused({Write(Op::kWriteOnly, 0, 10, 9)}, kInvalidRequestNak);
  ExpectRefused({Write(Op::kWriteOnly, 0, 10, 11)}, kInvalidRequestNak);
}

TEST_F(ResponderRefusalTest, MemoryOutsideTheKeyIsRefused) {
  Open();
  const uint32_t key = region_->rkey();
  const uint64_t begin = Remote(0), end = Remote(0) + kMemory;
  for (const auto& [address, rkey, length] :
       std::vector<std::tuple<uint64_t, uint32_t, uint32_t>>{{begin, key + 1, 8},
                                                             {begin, 0, 8},
                                                             {begin, 0xffffffff, 8},
                                                             {begin - 1, key, 8},
                                                             {end - 7, key, 8},
                                                             {end, key, 8},
                                                             {begin, key, kMemory + 1},
                                                             {begin + 8, key, 0x80000000},
                                                             {0xfffffffffffffff8, key, 8},
                                                             {0xfffffffffffffff8, key, 16},
                                                             {0, key, 8}}) {
    ExpectRefused({To(Request(Op::kReadRequest, 0), address, rkey, length)}, kRemoteAccessNak);
    if (length == 8) {
      ExpectRefused({To(Request(Op::kWriteOnly, 0, Bytes(8, 0)), address, rkey, length)}, kRemoteAccessNak);
    } else if (length > kMtu) {
      ExpectRefused({To(Request(Op::kWriteFirst, 0, full_), address, rkey, length)}, kRemoteAccessNak);
    }
  }
}

TEST_F(ResponderRefusalTest, AnAtomicOutsideTheKeyIsRefused) {
  Open();
  const uint64_t aligned = (Remote(0) + 7) / 8 * 8;
  ExpectRefused({To(Request(Op::kCompareSwap, 0), aligned, region_->rkey() + 1, 0)}, kRemoteAccessNak);
  ExpectRefused({To(Request(Op::kFetchAdd, 0), aligned + kMemory, region_->rkey(), 0)}, kRemoteAccessNak);
  ExpectRefused({To(Request(Op::kFetchAdd, 0), 0xfffffffffffffff8, region_->rkey(), 0)}, kRemoteAccessNak);
}

TEST_F(ResponderRefusalTest, AWriteThatIsTooLongIsRefusedBeforeItsFirstByte) {
  Open();
  auto small = domain_->RegisterMemory(absl::MakeSpan(memory_).first(300), kAll);
  const std::vector<uint8_t> before(memory_.begin(), memory_.begin() + 300);
  ExpectRefused({To(Request(Op::kWriteFirst, 0, full_), Remote(0), (*small)->rkey(), 301)}, kRemoteAccessNak);
  EXPECT_TRUE(MemoryHolds(0, before));
}

TEST_F(ResponderRefusalTest, RightsThatARegionLacksAreRefused) {
  Open();
  auto locked = domain_->RegisterMemory(absl::MakeSpan(memory_), kLocalWrite);
  const uint32_t key = (*locked)->rkey();
  ExpectRefused({To(Request(Op::kReadRequest, 0), Remote(0), key, 8)}, kRemoteAccessNak);
  ExpectRefused({To(Request(Op::kWriteOnly, 0, Bytes(8, 0)), Remote(0), key, 8)}, kRemoteAccessNak);
  ExpectRefused({To(Request(Op::kFetchAdd, 0), Remote(0), key, 8)}, kRemoteAccessNak);
}

TEST_F(ResponderRefusalTest, RightsThatAQueuePairLacksAreRefused) {
  queue_pair_options_.remote_access = kLocalRead;
  Open();
  const uint32_t key = region_->rkey();
  ExpectRefused({To(Request(Op::kReadRequest, 0), Remote(0), key, 8)}, kInvalidRequestNak);
  ExpectRefused({To(Request(Op::kWriteOnly, 0, Bytes(8, 0)), Remote(0), key, 8)}, kInvalidRequestNak);
  ExpectRefused({To(Request(Op::kFetchAdd, 0), Remote(0), key, 8)}, kInvalidRequestNak);
}

// No message has more packets than half of the PSNs: beyond that, new and old packets look alike.
TEST_F(ResponderRefusalTest, AMessageBeyondTheMaximumLengthIsRefused) {
  Open();
  constexpr size_t kHuge = (size_t{1} << 31) + kMtu;
  void* const memory = mmap(nullptr, kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto huge = *domain_->RegisterMemory(absl::MakeSpan(static_cast<uint8_t*>(memory), kHuge), kAll);
  const auto address = reinterpret_cast<uint64_t>(memory);
  ExpectRefused({To(Request(Op::kReadRequest, 0), address, huge->rkey(), kMaxMessage + 1)}, kInvalidRequestNak);
  ExpectRefused({To(Request(Op::kWriteFirst, 0, full_), address, huge->rkey(), kMaxMessage + 1)}, kInvalidRequestNak);
  huge.reset();
  munmap(memory, kHuge);
}

TEST_F(ResponderRefusalTest, AKeyOfAnotherDomainIsRefused) {
  Open();
  auto other = *device_->CreateProtectionDomain();
  auto foreign = other->RegisterMemory(absl::MakeSpan(memory_), kAll);
  ExpectRefused({To(Request(Op::kReadRequest, 0), Remote(0), (*foreign)->rkey(), 8)}, kRemoteAccessNak);
}

TEST_F(ResponderRefusalTest, AnUnalignedAtomicIsRefused) {
  Open();
  const uint64_t aligned = (Remote(0) + 7) / 8 * 8;
  ExpectRefused({To(Request(Op::kFetchAdd, 0), aligned + 4, region_->rkey(), 8)}, kInvalidRequestNak);
}

TEST_F(ResponderRefusalTest, ReadsBeyondTheDepthAreRefused) {
  Open();
  fabric_.room = 0;
  const Packet reads[] = {To(Request(Op::kReadRequest, 0), Remote(0), region_->rkey(), 8),
                          To(Request(Op::kReadRequest, 1), Remote(0), region_->rkey(), 20 * kMtu),
                          To(Request(Op::kReadRequest, 21), Remote(0), region_->rkey(), 20 * kMtu),
                          To(Request(Op::kReadRequest, 41), Remote(0), region_->rkey(), 8)};
  fabric_.Deliver(reads);
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  EXPECT_EQ(TakeSent().back().packet.syndrome, kInvalidRequestNak);
}

TEST_F(ResponderRefusalTest, AMessageLongerThanItsReceiveIsRefused) {
  Open();
  ExpectRefused({Request(Op::kSendOnly, 0, absl::MakeConstSpan(full_).first(101))}, kInvalidRequestNak);
  EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(77, Status::kLocalLength)));
}

TEST_F(ResponderRefusalTest, AReceiveWithoutItsMemoryIsRefused) {
  Open();
  auto read_only = domain_->RegisterMemory(absl::MakeSpan(memory_), kLocalRead);
  for (const auto& [lkey, status] : {std::pair(region_->lkey() + 1, Status::kLocalProtection),
                                     std::pair((*read_only)->lkey(), Status::kLocalAccess)}) {
    queue_pair_ = MakeQueuePair();
    Walk(*queue_pair_);
    PostReceive(1, {memory_.data(), 10, lkey});
    PostReceive(2, Piece(0, 10));
    Arrive({Request(Op::kSendOnly, 0, Bytes(5, 1))});
    EXPECT_EQ(TakeSent().back().packet.syndrome, kRemoteOperationNak);
    EXPECT_THAT(Outcomes(Poll()), ElementsAre(Pair(1, status), Pair(2, Status::kFlushed)));
  }
}

TEST_F(ResponderRefusalTest, TheNakFollowsEarlierAnswers) {
  Open();
  Arrive({To(Request(Op::kReadRequest, 0), Remote(0), region_->rkey(), 2 * kMtu),
          To(Request(Op::kReadRequest, 2), Remote(0), 0, 8)});
  const auto sent = TakeSent();
  EXPECT_THAT(Opcodes(sent), ElementsAre(Op::kReadResponseFirst, Op::kReadResponseLast, Op::kAcknowledge));
  EXPECT_EQ(sent[2].packet.syndrome, kRemoteAccessNak);
}

TEST_F(ResponderRefusalTest, TheNakIsRepeatedToAPeerThatMissedIt) {
  Open();
  const Packet bad = To(Request(Op::kReadRequest, 1), Remote(0), 0, 8);
  Arrive({To(Request(Op::kReadRequest, 0), Remote(0), region_->rkey(), 8), bad});
  TakeSent();
  Arrive({bad});
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.syndrome, kRemoteAccessNak);
  EXPECT_EQ(sent[0].packet.psn, bad.psn);
  // It missed the answer before too, which it cannot get any more.
  Arrive({To(Request(Op::kReadRequest, 0), Remote(0), region_->rkey(), 8), bad});
  EXPECT_EQ(TakeSent()[0].packet.psn, kFirstReceived);
}

TEST_F(ResponderRefusalTest, ARegionThatGoesAwayWhileItIsReadGivesNoMoreBytes) {
  Open();
  fabric_.room = 3;
  Arrive({To(Request(Op::kReadRequest, 0), Remote(0), region_->rkey(), 40 * kMtu)});
  TakeSent();
  const uint32_t key = region_->rkey();
  region_.reset();
  std::memset(memory_.data(), 0, kMemory);
  fabric_.room = SIZE_MAX;
  fabric_.Ready();
  for (const Sent& s : TakeSent()) EXPECT_EQ(s.payload, "");
  // The peer asks for what it misses.
  Arrive({To(Request(Op::kReadRequest, 3), Remote(3 * kMtu), key, 37 * kMtu)});
  const auto sent = TakeSent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.syndrome, kRemoteAccessNak);
  EXPECT_EQ(sent[0].packet.psn, 2u);
}

TEST_F(ResponderRefusalTest, ALateDuplicateOfAReadWhoseRegionIsGoneEndsNothing) {
  Open();
  const Packet read = To(Request(Op::kReadRequest, 0), Remote(0), region_->rkey(), 8);
  Arrive({read});
  region_.reset();
  Arrive({read});
  Run();
  EXPECT_EQ(queue_pair_->state(), QueuePairState::kReadyToSend);
}

TEST_F(ResponderRefusalTest, PacketsForNobodyAreDroppedAndCounted) {
  Open();
  Packet good = Request(Op::kSendOnly, 0);
  Packet corrupt = good, unknown = good, stranger = good, key = good, opcode = good, datagram = good, qkey = good;
  corrupt.corrupt = true;
  unknown.destination ^= 0x800000;
  stranger.peer = *Address::Parse("10.0.0.3");
  key.pkey = 0x1234;
  opcode.opcode = static_cast<Op>(0x15);
  datagram.opcode = Op::kDatagramSendOnly;
  qkey.opcode = Op::kDatagramSendOnly;
  qkey.destination = kManagementQueuePair;
  qkey.qkey = 1;
  Packet management = good;
  management.destination = kManagementQueuePair;
  Packet noise = qkey;
  noise.qkey = kManagementQkey;
  Arrive({corrupt, unknown, stranger, key, opcode, datagram, qkey, management, noise});
  EXPECT_THAT(TakeSent(), IsEmpty());
  const DeviceCounters counters = device_->counters();
  EXPECT_EQ(counters.dropped_corrupt, 1u);
  EXPECT_EQ(counters.dropped_unknown_queue_pair, 1u);
  EXPECT_EQ(counters.dropped_wrong_peer, 1u);
  EXPECT_EQ(counters.dropped_wrong_pkey, 1u);
  EXPECT_EQ(counters.dropped_unknown_opcode, 3u);
  EXPECT_EQ(counters.dropped_wrong_qkey, 1u);
  EXPECT_EQ(counters.dropped_bad_datagram, 1u);
  EXPECT_EQ(Arrived(counters), 9u);
  EXPECT_EQ(counters.queue_pairs.packets_received, 0u);
}

TEST_F(ResponderRefusalTest, EveryPacketIsHarmlessAndCounted) {
  Open();
  base::Random random(7);
  const auto payload = Bytes(5000, 1);
  int walks = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (queue_pair_->state() == QueuePairState::kError) {
      queue_pair_ = MakeQueuePair();
      Walk(*queue_pair_);
      Poll();
      for (uint64_t id = 0; id < 4; ++id) PostReceive(id, Piece(0, random.Below(2000)));
      Post(Opcode::kRead, 1, Piece(0, 3000));
      Post(Opcode::kSend, 2, Piece(0, 3000));
      Post(Opcode::kFetchAdd, 3, Piece(0, 8));
      TakeSent();
      ++walks;
    }
    Packet packet = FromPeer(static_cast<Op>(random.Below(0x18)), 0);
    const uint32_t first = packet.opcode >= Op::kReadResponseFirst && packet.opcode <= Op::kAtomicAcknowledge
                               ? kFirstSent
                               : kFirstReceived;
    packet.psn = static_cast<uint32_t>(random.Chance(0.9) ? first + random.Below(30) : random.Next()) & kPsnMask;
    packet.ack_request = random.Chance(0.5);
    packet.syndrome = random.Chance(0.5) ? uint8_t{kAck} : static_cast<uint8_t>(random.Next());
    packet.rkey = random.Chance(0.8) ? region_->rkey() : static_cast<uint32_t>(random.Next());
    packet.remote_address = random.Chance(0.8) ? Remote(random.Below(kMemory)) : random.Next();
    packet.dma_length = static_cast<uint32_t>(random.Chance(0.8) ? random.Below(4000) : random.Next());
    const size_t length = random.Chance(0.5) ? kMtu : random.Below(payload.size());
    Arrive({With(packet, absl::MakeConstSpan(payload).first(length))});
    if (i % 16 == 0) TakeSent();
  }
  EXPECT_GT(walks, 100);
  const DeviceCounters counters = device_->counters();
  EXPECT_EQ(Arrived(counters), 100'000u);
  EXPECT_EQ(Accounted(counters.queue_pairs), counters.queue_pairs.packets_received);
}

}  // namespace
}  // namespace tokamak::verbs::soft
