// Datagrams: messages of one packet to any queue pair, which arrive behind a route header or not at
// all.
#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "lib/base/bytes.h"
#include "tests/verbs/conformance/ends/datagram_end.h"
#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

constexpr size_t kDatagramSize = 64;

class DatagramsTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (backend().device(0).datagrams() == nullptr) GTEST_SKIP() << "skipped: device lacks Device::datagrams";
  }

  // Nothing of what was sent arrives at `receiver`, which gets what comes after it.
  void ExpectNothing(DatagramEnd& receiver) {
    LookOn();
    EXPECT_THAT(receiver.Arrivals(), IsEmpty());
  }

  uint32_t mtu() { return std::min(limits().active_mtu, backend().device(1).limits().active_mtu); }
};
TOKAMAK_CONFORMANCE(DatagramsTest);

TEST_P(DatagramsTest, ADatagramArrivesBehindItsRouteHeader) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.PostSlots();
  const auto arrival = a.Passes(b, a.To(b, 1, {a.outbox->piece(0, kDatagramSize)}));
  ASSERT_TRUE(arrival.has_value()) << backend().Counters();
  EXPECT_EQ(arrival->completion.byte_count, kGlobalRouteHeader + kDatagramSize);
  EXPECT_EQ(arrival->completion.opcode, CompletionOpcode::kReceive);
  EXPECT_FALSE(arrival->completion.has_immediate);
  EXPECT_EQ(arrival->completion.queue_pair_number, b.number());
  EXPECT_EQ(arrival->completion.source_queue_pair, a.number());
}

TEST_P(DatagramsTest, TheRouteHeaderNamesBothEnds) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.PostSlots();
  const auto arrival = a.Passes(b, a.To(b, 1, {a.outbox->piece(0, kDatagramSize)}));
  ASSERT_TRUE(arrival.has_value()) << backend().Counters();
  const uint8_t* const header = arrival->header.data();
  const Address &from = a.device.address(), &to = b.device.address();
  if (from.is_ipv4()) {
    EXPECT_TRUE(Same({header, 20}, std::vector<uint8_t>(20, 0)));
    EXPECT_EQ(header[20], 0x45);
    uint32_t sum = 0;
    for (int i = 20; i < 40; i += 2) sum += base::LoadBig16(header + i);
    EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu)
        << "a header whose checksum is wrong is no IPv4 header to rdma-core";
    EXPECT_TRUE(Same({header + 32, 4}, absl::MakeConstSpan(from.ip).subspan(12)));
    EXPECT_TRUE(Same({header + 36, 4}, absl::MakeConstSpan(to.ip).subspan(12)));
  } else {
    EXPECT_EQ(header[0] >> 4, 6);
    EXPECT_TRUE(Same({header + 8, 16}, from.ip));
    EXPECT_TRUE(Same({header + 24, 16}, to.ip));
  }
}

TEST_P(DatagramsTest, AnImmediateIsDelivered) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.PostSlots();
  const auto arrival = a.Passes(b, a.To(b, 1, {a.outbox->piece(0, 5)}).Immediate(0xcafef00d));
  ASSERT_TRUE(arrival.has_value()) << backend().Counters();
  EXPECT_TRUE(arrival->completion.has_immediate);
  EXPECT_EQ(arrival->completion.immediate, 0xcafef00du);
}

TEST_P(DatagramsTest, ADatagramOfNothingArrives) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.PostSlots();
  const auto arrival = a.Passes(b, a.To(b, 1, {}));
  ASSERT_TRUE(arrival.has_value()) << backend().Counters();
  EXPECT_EQ(arrival->completion.byte_count, kGlobalRouteHeader);
}

TEST_P(DatagramsTest, ADatagramOfThePathMtuArrivesWhole) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.PostSlots();
  EXPECT_TRUE(a.Passes(b, a.To(b, 1, {a.outbox->piece(0, mtu())}))) << backend().Counters();
}

TEST_P(DatagramsTest, WhatIsLongerThanThePathMtuIsCompleteAndSendsNothing) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.PostSlots();
  Memory large(*a.domain, 2 * kMaxMtu, 7);
  a.MustPost({a.To(b, 1, {large.piece(0, limits().active_mtu + 1)})});
  EXPECT_THAT(a.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kSend)));
  ExpectNothing(b);
  EXPECT_TRUE(a.Reaches(b)) << backend().Counters();
}

TEST_P(DatagramsTest, SendsCompleteInOrderWhenTheyHaveLeft) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  Memory large(*a.domain, 2 * kMaxMtu, 7);
  const Sge piece = a.outbox->piece(0, kDatagramSize);
  a.MustPost({a.To(b, 1, {piece}), a.To(b, 2, {large.whole()}), a.To(b, 3, {piece}).Unsignaled(),
              a.To(b, 4, {large.whole()}), a.To(b, 5, {piece})});
  EXPECT_THAT(a.AwaitSends(4), ElementsAre(Done(1, CompletionOpcode::kSend), Done(2, CompletionOpcode::kSend),
                                           Done(4, CompletionOpcode::kSend), Done(5, CompletionOpcode::kSend)));
}

TEST_P(DatagramsTest, AFullQueueOfSendsCompletesAndTakesAsManyAgain) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  const Sge piece = a.outbox->piece(0, mtu());
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 64; ++i) a.MustPost({a.To(b, i, {piece})});
    EXPECT_TRUE(absl::IsResourceExhausted(a.Post({a.To(b, 64, {piece})}).status)) << "none was polled yet";
    EXPECT_EQ(a.AwaitSends(64).size(), 64u);
  }
}

TEST_P(DatagramsTest, AnotherQkeyIsNotLetIn) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.PostSlots();
  a.MustPost({a.To(b, 1, {a.outbox->piece(0, kDatagramSize)}).Qkey(kServiceQkey + 1)});
  EXPECT_THAT(a.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kSend)));
  ExpectNothing(b);
  EXPECT_TRUE(a.Reaches(b)) << backend().Counters();
}

TEST_P(DatagramsTest, AControlledQkeyStandsForTheSendersOwn) {
  DatagramQueuePairOptions options;
  options.qkey = 0x1111;
  DatagramEnd a(backend(), 0, options), b(backend(), 1, options);
  b.PostSlots();
  EXPECT_TRUE(a.Reaches(b, kControlledQkey | 5)) << backend().Counters();
}

TEST_P(DatagramsTest, AQkeyMayBeChanged) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.PostSlots();
  DatagramAttributes attributes;
  attributes.qkey = 0x2222;
  EXPECT_TRUE(b.queue_pair->Modify(QueuePairState::kReadyToSend, attributes).ok());
  a.MustPost({a.To(b, 1, {a.outbox->piece(0, kDatagramSize)})});
  a.AwaitSends(1);
  ExpectNothing(b);
  EXPECT_TRUE(a.Reaches(b, 0x2222)) << backend().Counters();
}

TEST_P(DatagramsTest, WithoutAReceiveADatagramIsLost) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  a.MustPost({a.To(b, 1, {a.outbox->piece(0, kDatagramSize)})});
  EXPECT_THAT(a.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kSend)));
  LookOn();
  b.PostSlots();
  ExpectNothing(b);
  EXPECT_TRUE(a.Reaches(b)) << backend().Counters();
}

TEST_P(DatagramsTest, AReceiveThatIsTooShortStaysForTheNext) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.MustPostReceives({{0, {b.slots->piece(0, kGlobalRouteHeader + kDatagramSize - 1)}}});
  a.MustPost({a.To(b, 1, {a.outbox->piece(0, kDatagramSize)})});
  EXPECT_THAT(a.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kSend)));
  ExpectNothing(b);
  EXPECT_TRUE(b.slots->Untouched());
  const auto arrival = a.Passes(b, a.To(b, 2, {a.outbox->piece(1, kDatagramSize - 1)}));
  ASSERT_TRUE(arrival.has_value()) << backend().Counters();
  EXPECT_EQ(arrival->completion.id, 0u);
}

TEST_P(DatagramsTest, ADatagramIsGatheredAndScattered) {
  DatagramQueuePairOptions options;
  options.max_sges = 3;
  if (limits().max_sges < 3) GTEST_SKIP() << "skipped: device lacks Limits::max_sges";
  DatagramEnd a(backend(), 0, options), b(backend(), 1, options);
  Memory &from = *a.outbox, &to = *b.slots;
  for (uint64_t i = 0; i < 8; ++i) {
    b.MustPostReceives({{i, {to.piece(i * 200, 10), to.piece(i * 200 + 20, 40), to.piece(i * 200 + 70, 100)}}});
  }
  const auto message = a.To(b, 1, {from.piece(0, 3), from.piece(100, 30), from.piece(200, 11)});
  std::vector<uint8_t> sent;
  for (const Sge& piece : message.pieces) sent.insert(sent.end(), piece.address, piece.address + piece.length);
  Completions received;
  for (int i = 0; i < 100 && received.empty(); ++i) {
    a.MustPost({message});
    a.AwaitSends(1);
    backend().Drive(
        [&] {
          received = PollNow(*b.receives, 1);
          return !received.empty();
        },
        backend().quiet());
  }
  ASSERT_THAT(received, ElementsAre(Received(0, kGlobalRouteHeader + 44))) << backend().Counters();
  // 10 bytes of the header, 30 more, and the first 10 of the message behind them.
  EXPECT_TRUE(Same(to.bytes(50, 10), absl::MakeConstSpan(sent).first(10)));
  EXPECT_TRUE(Same(to.bytes(70, 34), absl::MakeConstSpan(sent).subspan(10)));
  EXPECT_TRUE(to.Untouched(10, 10));
  EXPECT_TRUE(to.Untouched(60, 10));
  EXPECT_TRUE(to.Untouched(104, 96));
}

TEST_P(DatagramsTest, InlineBytesMayChangeWhenPosted) {
  DatagramQueuePairOptions options;
  options.max_inline = kDatagramSize;
  DatagramEnd a(backend(), 0, options), b(backend(), 1);
  b.PostSlots();
  uint8_t bytes[kDatagramSize];
  const auto expected = Pattern(33, kDatagramSize);
  bool arrived = false;
  for (int i = 0; i < 100 && !arrived; ++i) {
    std::memcpy(bytes, expected.data(), kDatagramSize);
    a.MustPost({a.To(b, 1, {{bytes, kDatagramSize, 0}}).With(kInline)});
    std::memset(bytes, 0, kDatagramSize);
    a.AwaitSends(1);
    backend().Drive(
        [&] {
          for (const Arrival& arrival : b.Arrivals()) arrived |= arrival.payload == expected;
          return arrived;
        },
        backend().quiet());
  }
  EXPECT_TRUE(arrived) << backend().Counters();
  EXPECT_FALSE(a.Post({a.To(b, 1, {a.outbox->piece(0, kDatagramSize + 1)}).With(kInline)}).ok());
}

TEST_P(DatagramsTest, OneQueuePairHearsManyAndTellsThemApart) {
  DatagramEnd a(backend(), 0), a2(backend(), 0), b(backend(), 1), last(backend(), backend().device_count() - 1);
  b.PostSlots();
  for (DatagramEnd* sender : {&a, &a2, &last}) {
    sender->outbox->Fill(sender->number());
    const auto arrival = sender->Passes(b, sender->To(b, 1, {sender->outbox->piece(0, kDatagramSize)}));
    ASSERT_TRUE(arrival.has_value()) << backend().Counters();
    EXPECT_EQ(arrival->completion.source_queue_pair, sender->number());
  }
}

TEST_P(DatagramsTest, AQueuePairMaySendToItself) {
  DatagramEnd a(backend(), 0);
  a.PostSlots();
  EXPECT_TRUE(a.Reaches(a)) << backend().Counters();
}

TEST_P(DatagramsTest, SharedReceivesTakeDatagramsInTheOrderPosted) {
  TOKAMAK_NEEDS(shared_receive);
  DatagramEnd a(backend(), 0), home(backend(), 1);
  auto shared = home.domain->CreateSharedReceiveQueue(16, 1);
  ASSERT_TRUE(shared.ok()) << shared.status();
  DatagramQueuePairOptions options;
  options.shared_receives = shared->get();
  DatagramEnd b(backend(), 1, options, &home), b2(backend(), 1, options, &home);
  EXPECT_FALSE(b.queue_pair->PostReceive({}).ok());
  for (uint64_t i = 0; i < 16; ++i) {
    const Sge piece = home.slots->piece(i * DatagramEnd::kSlotSize, DatagramEnd::kSlotSize);
    ReceiveRequest request{i, absl::MakeConstSpan(&piece, 1)};
    ASSERT_TRUE((*shared)->PostReceive(absl::MakeConstSpan(&request, 1)).ok());
  }
  uint64_t next = 0;
  for (DatagramEnd* receiver : {&b, &b2, &b}) {
    a.outbox->Fill(next + 50);
    Datagram message = a.To(*receiver, 1, {a.outbox->piece(0, kDatagramSize)});
    const auto arrival = a.Passes(home, message);
    ASSERT_TRUE(arrival.has_value()) << backend().Counters();
    EXPECT_GE(arrival->completion.id, next);
    EXPECT_EQ(arrival->completion.queue_pair_number, receiver->number());
    next = arrival->completion.id + 1;
  }
}

TEST_P(DatagramsTest, ASourceWithoutItsKeyEndsTheQueuePair) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  a.PostSlots(2);
  const Sge good = a.outbox->piece(0, kDatagramSize);
  Sge bad = good;
  bad.lkey = 0;
  a.MustPost({a.To(b, 1, {good}), a.To(b, 2, {bad}), a.To(b, 3, {good})});
  const Completions done = a.AwaitSends(3);
  ASSERT_EQ(done.size(), 3u);
  EXPECT_THAT(done[0], Done(1, CompletionOpcode::kSend));
  EXPECT_EQ(done[1].id, 2u);
  EXPECT_EQ(done[1].status, CompletionStatus::kLocalProtection);
  EXPECT_THAT(done[2], Flushed(3));
  EXPECT_EQ(a.state(), QueuePairState::kError);
  EXPECT_THAT(PollNow(*a.receives), ElementsAre(Flushed(0), Flushed(1)));
}

TEST_P(DatagramsTest, AReceiveWithoutItsKeyEndsTheQueuePair) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  Sge bad = b.slots->piece(0, DatagramEnd::kSlotSize);
  bad.lkey = 0;
  b.MustPostReceives({{5, {bad}}, {6, {bad}}});
  for (int i = 0; i < 200 && b.state() != QueuePairState::kError; ++i) {
    a.MustPost({a.To(b, 1, {a.outbox->piece(0, kDatagramSize)})});
    a.AwaitSends(1);
    backend().Drive([&] { return b.state() == QueuePairState::kError; }, backend().quiet());
  }
  EXPECT_EQ(b.state(), QueuePairState::kError) << backend().Counters();
  const Completions received = Await(backend(), *b.receives, 2);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].status, CompletionStatus::kLocalProtection);
  EXPECT_THAT(received[1], Flushed(6));
  EXPECT_TRUE(b.slots->Untouched());
}

TEST_P(DatagramsTest, AReceiveThatMayNotBeWrittenEndsTheQueuePair) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  Memory closed(*b.domain, 1024, 8, kLocalRead);
  b.MustPostReceives({{5, {closed.whole()}}});
  for (int i = 0; i < 200 && b.state() != QueuePairState::kError; ++i) {
    a.MustPost({a.To(b, 1, {a.outbox->piece(0, kDatagramSize)})});
    a.AwaitSends(1);
    backend().Drive([&] { return b.state() == QueuePairState::kError; }, backend().quiet());
  }
  const Completions received = Await(backend(), *b.receives, 1);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].status, CompletionStatus::kLocalAccess);
  EXPECT_TRUE(closed.Untouched());
}

TEST_P(DatagramsTest, ErrorFlushesBothQueuesInOrder) {
  DatagramEnd a(backend(), 0);
  a.PostSlots(3);
  EXPECT_TRUE(a.queue_pair->Modify(QueuePairState::kError).ok());
  EXPECT_THAT(Await(backend(), *a.receives, 3), ElementsAre(Flushed(0), Flushed(1), Flushed(2)));
  a.MustPost({a.To(a, 1, {}), a.To(a, 2, {}).Unsignaled()});
  EXPECT_THAT(a.AwaitSends(2), ElementsAre(Flushed(1), Flushed(2)));
  a.MustPostReceives({{7, {}}});
  EXPECT_THAT(Await(backend(), *a.receives, 1), ElementsAre(Flushed(7)));
}

TEST_P(DatagramsTest, AfterResetItIsWalkedAgain) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.PostSlots(4);
  EXPECT_TRUE(b.queue_pair->Modify(QueuePairState::kReset).ok());
  EXPECT_FALSE(b.queue_pair->PostReceive({}).ok());
  EXPECT_FALSE(b.Post({b.To(a, 1, {})}).ok());
  EXPECT_TRUE(b.queue_pair->Modify(QueuePairState::kInit).ok());
  EXPECT_TRUE(b.Walk().ok());
  LookOn();
  EXPECT_THAT(PollNow(*b.receives), IsEmpty());
  b.PostSlots();
  EXPECT_TRUE(a.Reaches(b)) << backend().Counters();
}

TEST_P(DatagramsTest, ReadyToReceiveIsEnoughToReceiveAndInitIsNot) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  EXPECT_TRUE(b.queue_pair->Modify(QueuePairState::kReset).ok());
  EXPECT_TRUE(b.queue_pair->Modify(QueuePairState::kInit).ok());
  b.PostSlots();
  a.MustPost({a.To(b, 1, {a.outbox->piece(0, kDatagramSize)})});
  a.AwaitSends(1);
  ExpectNothing(b);
  EXPECT_FALSE(b.Post({b.To(a, 1, {})}).ok());
  EXPECT_TRUE(b.queue_pair->Modify(QueuePairState::kReadyToReceive).ok());
  EXPECT_FALSE(b.Post({b.To(a, 1, {})}).ok());
  EXPECT_TRUE(a.Reaches(b)) << backend().Counters();
}

TEST_P(DatagramsTest, IllegalStepsAreRefusedAndChangeNothing) {
  DatagramEnd a(backend(), 0);
  EXPECT_FALSE(a.queue_pair->Modify(QueuePairState::kInit).ok());
  EXPECT_FALSE(a.queue_pair->Modify(QueuePairState::kReadyToReceive).ok());
  EXPECT_EQ(a.state(), QueuePairState::kReadyToSend);
  EXPECT_TRUE(a.queue_pair->Modify(QueuePairState::kReset).ok());
  EXPECT_FALSE(a.queue_pair->Modify(QueuePairState::kReadyToReceive).ok());
  EXPECT_FALSE(a.queue_pair->Modify(QueuePairState::kReadyToSend).ok());
  EXPECT_EQ(a.state(), QueuePairState::kReset);
}

TEST_P(DatagramsTest, AnAddressOfAnotherFamilyIsRefused) {
  DatagramEnd a(backend(), 0);
  const Address other = *Address::Parse(a.device.address().is_ipv4() ? "[fd00::1]:0" : "10.0.0.1");
  EXPECT_FALSE(a.device.datagrams()->CreateAddressHandle(*a.domain, {other}).ok());
}

TEST_P(DatagramsTest, OnlyASolicitedDatagramWakesWhoWaitsForThatAlone) {
  TOKAMAK_NEEDS(solicited_events);
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.PostSlots();
  b.receives->RequestNotify(true);
  EXPECT_TRUE(a.Reaches(b)) << backend().Counters();
  LookOn();
  EXPECT_EQ(b.receive_events, 0);
  a.outbox->Fill(77);
  EXPECT_TRUE(a.Passes(b, a.To(b, 1, {a.outbox->piece(0, kDatagramSize)}).With(kSolicited)));
  EXPECT_TRUE(Drive([&] { return b.receive_events == 1; }));
}

TEST_P(DatagramsTest, AConnectionsEndGetsNoDatagrams) {
  auto pair = Connect();
  DatagramEnd a(backend(), 0), b(backend(), 1);
  Memory to(*pair->passive.domain, 256, 3);
  pair->passive.MustPostReceives({{1, {to.whole()}}});
  Datagram message = a.To(b, 1, {a.outbox->piece(0, kDatagramSize)});
  message.request.queue_pair_number = pair->passive.queue_pair->number();
  a.MustPost({message});
  a.AwaitSends(1);
  LookOn();
  EXPECT_THAT(PollNow(*pair->passive.receives), IsEmpty());
  EXPECT_TRUE(to.Untouched());
  pair->passive.MustPostReceives({{2, {}}});
  Memory from(*pair->active.domain, 16, 4);
  pair->active.MustPost({Send(1, {from.whole()})});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(1, 16)));
}

TEST_P(DatagramsTest, DroppingItWithSendsInFlightLeavesTheirMemoryAlone) {
  DatagramEnd b(backend(), 1);
  b.PostSlots();
  auto a = std::make_unique<DatagramEnd>(backend(), 0);
  const Sge piece = a->outbox->piece(0, kDatagramSize);
  for (uint64_t i = 0; i < 64; ++i) a->MustPost({a->To(b, i, {piece})});
  a->queue_pair.reset();
  a->outbox->Fill(999);
  const auto after = Pattern(999, kDatagramSize);
  LookOn();
  for (const Arrival& arrival : b.Arrivals()) EXPECT_NE(arrival.payload, after);
}

TEST_P(DatagramsTest, ARegionThatGoesTakesItsDatagramsWithIt) {
  DatagramEnd a(backend(), 0), b(backend(), 1);
  b.PostSlots();
  Memory from(*a.domain, kDatagramSize, 5);
  for (uint64_t i = 0; i < 32; ++i) a.MustPost({a.To(b, i, {from.whole()})});
  from.Deregister();
  from.Fill(999);
  // Sends that had not begun fail, the others are complete, in order.
  const Completions done = a.AwaitSends(32);
  const auto failed = std::find_if(done.begin(), done.end(),
                                   [](const Completion& c) { return c.status != CompletionStatus::kSuccess; });
  EXPECT_TRUE(failed == done.end() || failed->status == CompletionStatus::kLocalProtection);
  for (size_t i = 0; i < done.size(); ++i) EXPECT_EQ(done[i].id, i);
  LookOn();
  for (const Arrival& arrival : b.Arrivals()) EXPECT_NE(arrival.payload, Pattern(999, kDatagramSize));
}

// Messages to groups, of which every member gets one.
class MulticastTest : public DatagramsTest {
 protected:
  void SetUp() override {
    DatagramsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    DatagramEnd probe(backend(), 0);
    const absl::Status status = probe.queue_pair->Attach(group());
    if (absl::IsUnimplemented(status)) GTEST_SKIP() << "skipped: device lacks DatagramQueuePair::Attach";
    EXPECT_TRUE(status.ok()) << status;
    if (backend().device(0).address().udp_port != backend().device(1).address().udp_port) {
      GTEST_SKIP() << "skipped: device lacks an Address::udp_port in common with the others, where a group would be";
    }
  }
  Address group(int which = 1) {
    const char* const four = which == 1 ? "239.7.7.1" : "239.7.7.2";
    const char* const six = which == 1 ? "[ff15::7:1]:0" : "[ff15::7:2]:0";
    return *Address::Parse(backend().device(0).address().is_ipv4() ? four : six);
  }
};
TOKAMAK_CONFORMANCE(MulticastTest);

TEST_P(MulticastTest, EveryMemberGetsTheMessage) {
  DatagramEnd sender(backend(), 0), b(backend(), 1), c(backend(), backend().device_count() - 1), c2(backend(), 1);
  for (DatagramEnd* member : {&b, &c, &c2}) {
    ASSERT_TRUE(member->queue_pair->Attach(group()).ok());
    member->PostSlots();
  }
  int seed = 0;
  for (DatagramEnd* member : {&b, &c, &c2}) {
    sender.outbox->Fill(++seed);
    const auto arrival = sender.Passes(*member, sender.ToGroup(group(), 1, {sender.outbox->piece(0, kDatagramSize)}));
    ASSERT_TRUE(arrival.has_value()) << backend().Counters();
    EXPECT_EQ(arrival->completion.source_queue_pair, sender.number());
    const size_t at = group().is_ipv4() ? 36 : 24;
    EXPECT_TRUE(Same(absl::MakeConstSpan(arrival->header).subspan(at), absl::MakeConstSpan(group().ip).last(40 - at)))
        << "the route header names the group";
  }
}

TEST_P(MulticastTest, WhoSendsToAGroupThatItIsInHearsItself) {
  DatagramEnd a(backend(), 0);
  ASSERT_TRUE(a.queue_pair->Attach(group()).ok());
  a.PostSlots();
  EXPECT_TRUE(a.Passes(a, a.ToGroup(group(), 1, {a.outbox->piece(0, kDatagramSize)}))) << backend().Counters();
}

TEST_P(MulticastTest, WhoIsInNoGroupOrInAnotherHearsNothing) {
  DatagramEnd sender(backend(), 0), none(backend(), 1), other(backend(), 1), member(backend(), 1);
  for (DatagramEnd* end : {&none, &other, &member}) end->PostSlots();
  ASSERT_TRUE(other.queue_pair->Attach(group(2)).ok());
  ASSERT_TRUE(member.queue_pair->Attach(group()).ok());
  EXPECT_TRUE(sender.Passes(member, sender.ToGroup(group(), 1, {sender.outbox->piece(0, kDatagramSize)})));
  ExpectNothing(none);
  ExpectNothing(other);
}

TEST_P(MulticastTest, WhoLeavesHearsNoMoreAndTheOthersDo) {
  DatagramEnd sender(backend(), 0), leaver(backend(), 1), member(backend(), 1);
  auto dropped = std::make_unique<DatagramEnd>(backend(), 1);
  for (DatagramEnd* end : {&leaver, &member, dropped.get()}) {
    ASSERT_TRUE(end->queue_pair->Attach(group()).ok());
    end->PostSlots();
  }
  EXPECT_TRUE(leaver.queue_pair->Detach(group()).ok());
  dropped.reset();
  EXPECT_TRUE(sender.Passes(member, sender.ToGroup(group(), 1, {sender.outbox->piece(0, kDatagramSize)})));
  ExpectNothing(leaver);
  EXPECT_TRUE(member.queue_pair->Detach(group()).ok());
  LookOn();
  member.Arrivals();
  sender.MustPost({sender.ToGroup(group(), 2, {sender.outbox->piece(9, kDatagramSize)})});
  EXPECT_THAT(sender.AwaitSends(1), ElementsAre(Done(2, CompletionOpcode::kSend)));
  ExpectNothing(member);
}

TEST_P(MulticastTest, AMemberWithAnotherQkeyHearsNothing) {
  DatagramQueuePairOptions options;
  options.qkey = 5;
  DatagramEnd sender(backend(), 0), member(backend(), 1), other(backend(), 1, options);
  for (DatagramEnd* end : {&member, &other}) {
    ASSERT_TRUE(end->queue_pair->Attach(group()).ok());
    end->PostSlots();
  }
  EXPECT_TRUE(sender.Passes(member, sender.ToGroup(group(), 1, {sender.outbox->piece(0, kDatagramSize)})));
  ExpectNothing(other);
}

TEST_P(MulticastTest, AttachingTwiceIsAttachingOnce) {
  DatagramEnd sender(backend(), 0), member(backend(), 1);
  ASSERT_TRUE(member.queue_pair->Attach(group()).ok());
  EXPECT_TRUE(member.queue_pair->Attach(group()).ok());
  EXPECT_TRUE(member.queue_pair->Detach(group()).ok());
  EXPECT_TRUE(absl::IsNotFound(member.queue_pair->Detach(group())));
}

TEST_P(MulticastTest, OnlyAMulticastAddressIsAGroup) {
  DatagramEnd member(backend(), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(member.queue_pair->Attach(member.device.address())));
}

}  // namespace
}  // namespace tokamak::verbs::conformance
