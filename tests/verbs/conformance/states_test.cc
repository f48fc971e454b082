// The states of a queue pair, and walking them by hand with attributes that were exchanged by other
// means.
#include <algorithm>

#include "absl/status/status.h"
#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr auto kReset = QueuePairState::kReset;
constexpr auto kInit = QueuePairState::kInit;
constexpr auto kReadyToReceive = QueuePairState::kReadyToReceive;
constexpr auto kReadyToSend = QueuePairState::kReadyToSend;
constexpr auto kError = QueuePairState::kError;

class StatesTest : public ConformanceTest {
 protected:
  // Returns the attributes with which `end` talks to `peer`. PSNs: the first that `end` sends, and
  // the first that `peer` sends.
  QueuePairAttributes Attributes(End& end, End& peer, uint32_t send_psn, uint32_t receive_psn, uint32_t mtu = 1024) {
    QueuePairAttributes attributes;
    attributes.remote_access = kRemoteWrite | kRemoteRead;
    attributes.peer = peer.device.address();
    attributes.peer_number = peer.queue_pair->number();
    attributes.send_psn = send_psn;
    attributes.receive_psn = receive_psn;
    attributes.path_mtu = std::min({mtu, end.device.limits().active_mtu, peer.device.limits().active_mtu});
    attributes.reliability = ConnectDefaults().reliability;
    return attributes;
  }

  static void MustModify(End& end, QueuePairState state, const QueuePairAttributes& attributes) {
    const absl::Status status = end.queue_pair->Modify(state, attributes);
    EXPECT_TRUE(status.ok()) << "to " << ToString(state) << ": " << status;
    EXPECT_EQ(end.state(), state);
  }

  void ToReadyToSend(End& end, const QueuePairAttributes& attributes) {
    MustModify(end, kReadyToReceive, attributes);
    MustModify(end, kReadyToSend, attributes);
  }

  // From Init on both sides.
  void WalkByHand(End& a, End& b, uint32_t a_psn, uint32_t b_psn, uint32_t mtu = 1024) {
    ToReadyToSend(a, Attributes(a, b, a_psn, b_psn, mtu));
    ToReadyToSend(b, Attributes(b, a, b_psn, a_psn, mtu));
  }

  // Brings a fresh queue pair to `state` by legal steps.
  void BringTo(End& end, End& peer, QueuePairState state) {
    const QueuePairAttributes attributes = Attributes(end, peer, 100, 200);
    switch (state) {
      case kReset:
      case kError:
        MustModify(end, state, attributes);
        break;
      case kInit:
        break;
      case kReadyToReceive:
        MustModify(end, kReadyToReceive, attributes);
        break;
      case kReadyToSend:
        ToReadyToSend(end, attributes);
        break;
    }
  }
};
TOKAMAK_CONFORMANCE(StatesTest);

TEST_P(StatesTest, AQueuePairIsMadeInInit) {
  End end(backend(), 0);
  EXPECT_EQ(end.state(), kInit);
}

TEST_P(StatesTest, AConnectedQueuePairIsReadyToSend) {
  auto pair = Connect();
  EXPECT_EQ(pair->active.state(), kReadyToSend);
  EXPECT_EQ(pair->passive.state(), kReadyToSend);
}

TEST_P(StatesTest, QueuePairNumbersHave24BitsAndDiffer) {
  End a(backend(), 0), b(backend(), 0);
  EXPECT_NE(a.queue_pair->number(), b.queue_pair->number());
  EXPECT_LT(a.queue_pair->number(), 1u << 24);
}

TEST_P(StatesTest, LegalStepsAreTaken) {
  TOKAMAK_NEEDS(manual_modify);
  constexpr std::pair<QueuePairState, QueuePairState> kLegal[] = {
      {kReset, kInit},  {kInit, kReadyToReceive},  {kReadyToReceive, kReadyToSend},
      {kInit, kReset},  {kReadyToReceive, kReset}, {kReadyToSend, kReset},
      {kError, kReset}, {kReset, kReset},          {kReset, kError},
      {kInit, kError},  {kReadyToReceive, kError}, {kReadyToSend, kError},
      {kError, kError},
  };
  End peer(backend(), 1);
  for (const auto& [from, to] : kLegal) {
    SCOPED_TRACE(testing::Message() << ToString(from) << " to " << ToString(to));
    End end(backend(), 0);
    BringTo(end, peer, from);
    MustModify(end, to, Attributes(end, peer, 100, 200));
  }
}

TEST_P(StatesTest, IllegalStepsAreRefusedAndChangeNothing) {
  TOKAMAK_NEEDS(manual_modify);
  constexpr std::pair<QueuePairState, QueuePairState> kIllegal[] = {
      {kReset, kReadyToReceive}, {kReset, kReadyToSend},    {kInit, kReadyToSend},
      {kReadyToReceive, kInit},  {kReadyToSend, kInit},     {kReadyToSend, kReadyToReceive},
      {kError, kInit},           {kError, kReadyToReceive}, {kError, kReadyToSend},
  };
  End peer(backend(), 1);
  for (const auto& [from, to] : kIllegal) {
    SCOPED_TRACE(testing::Message() << ToString(from) << " to " << ToString(to));
    End end(backend(), 0);
    BringTo(end, peer, from);
    const absl::Status status = end.queue_pair->Modify(to, Attributes(end, peer, 100, 200));
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(end.state(), from);
  }
}

TEST_P(StatesTest, AttributesOutsideOfTheSpecificationAreRefused) {
  TOKAMAK_NEEDS(manual_modify);
  End end(backend(), 0), peer(backend(), 1);
  QueuePairAttributes bad_mtu = Attributes(end, peer, 1, 2);
  bad_mtu.path_mtu = 1000;
  EXPECT_TRUE(absl::IsInvalidArgument(end.queue_pair->Modify(kReadyToReceive, bad_mtu)));
  QueuePairAttributes bad_number = Attributes(end, peer, 1, 2);
  bad_number.peer_number = 1 << 24;
  EXPECT_TRUE(absl::IsInvalidArgument(end.queue_pair->Modify(kReadyToReceive, bad_number)));
  QueuePairAttributes bad_psn = Attributes(end, peer, 1, 1 << 24);
  EXPECT_TRUE(absl::IsInvalidArgument(end.queue_pair->Modify(kReadyToReceive, bad_psn)));
  EXPECT_EQ(end.state(), kInit);
  MustModify(end, kReadyToReceive, Attributes(end, peer, 1, 2));
  QueuePairAttributes bad_retries = Attributes(end, peer, 1, 2);
  bad_retries.reliability.retry_count = kMaxRetryCount + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(end.queue_pair->Modify(kReadyToSend, bad_retries)));
  EXPECT_EQ(end.state(), kReadyToReceive);
}

TEST_P(StatesTest, TwoQueuePairsWalkedByHandTalk) {
  TOKAMAK_NEEDS(manual_modify);
  End a(backend(), 0), b(backend(), 1);
  WalkByHand(a, b, 1000, 77);
  ExpectWorks(a, b);
}

TEST_P(StatesTest, PacketNumbersWrapAroundUnnoticed) {
  TOKAMAK_NEEDS(manual_modify);
  constexpr size_t kSize = 10000;
  for (uint32_t before_wrap : {1u, 2u, 7u, 30u}) {
    SCOPED_TRACE(testing::Message() << before_wrap << " packets before the wrap");
    End a(backend(), 0), b(backend(), 1);
    WalkByHand(a, b, 0x1000000 - before_wrap, 0x1000000 - before_wrap, 256);
    Memory here(*a.domain, kSize, 1), there(*b.domain, kSize, 2), back(*a.domain, kSize, 3);
    for (uint64_t i = 0; i < 20; ++i) b.MustPostReceives({{i, {}}});
    for (uint64_t i = 0; i < 20; ++i) a.MustPost({Send(i, {})});
    a.MustPost({Write(100, {here.whole()}, there.remote(), there.rkey()),
                Read(101, {back.whole()}, there.remote(), there.rkey())});
    EXPECT_EQ(a.AwaitSends(22).size(), 22u);
    EXPECT_EQ(b.AwaitReceives(20).size(), 20u);
    EXPECT_TRUE(there.Holds(1));
    EXPECT_TRUE(back.Holds(1));
    ExpectWorks(a, b);
  }
}

TEST_P(StatesTest, ReceivesMayBePostedInInitAndSendsMayNot) {
  End end(backend(), 0);
  end.MustPostReceives({{1, {}}});
  EXPECT_TRUE(absl::IsFailedPrecondition(end.Post({Send(1, {})}).status));
}

TEST_P(StatesTest, SendsMayNotBePostedInReadyToReceive) {
  TOKAMAK_NEEDS(manual_modify);
  End a(backend(), 0), b(backend(), 1);
  BringTo(a, b, kReadyToReceive);
  EXPECT_TRUE(absl::IsFailedPrecondition(a.Post({Send(1, {})}).status));
}

TEST_P(StatesTest, NothingMayBePostedInReset) {
  TOKAMAK_NEEDS(manual_modify);
  End a(backend(), 0), b(backend(), 1);
  BringTo(a, b, kReset);
  EXPECT_TRUE(absl::IsFailedPrecondition(a.Post({Send(1, {})}).status));
  EXPECT_TRUE(absl::IsFailedPrecondition(a.PostReceives({{1, {}}}).status));
}

TEST_P(StatesTest, ReadyToReceiveIsEnoughToReceive) {
  TOKAMAK_NEEDS(manual_modify);
  End a(backend(), 0), b(backend(), 1);
  ToReadyToSend(a, Attributes(a, b, 5, 6));
  MustModify(b, kReadyToReceive, Attributes(b, a, 6, 5));
  Memory from(*a.domain, 3000, 1), to(*b.domain, 3000, 2);
  b.MustPostReceives({{1, {to.whole()}}});
  a.MustPost({Send(2, {from.whole()})});
  EXPECT_THAT(b.AwaitReceives(1), ElementsAre(Received(1, 3000)));
  EXPECT_THAT(a.AwaitSends(1), ElementsAre(Done(2, CompletionOpcode::kSend)));
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(StatesTest, APeerThatGetsReadyWithinTheRetriesGetsTheMessage) {
  TOKAMAK_NEEDS(manual_modify);
  End a(backend(), 0), b(backend(), 1);
  QueuePairAttributes patient = Attributes(a, b, 5, 6);
  patient.reliability.ack_timeout = backend().quiet();
  ToReadyToSend(a, patient);
  Memory from(*a.domain, 3000, 1), to(*b.domain, 3000, 2);
  b.MustPostReceives({{1, {to.whole()}}});
  a.MustPost({Send(2, {from.whole()})});
  LookOn();
  EXPECT_TRUE(PollNow(*a.sends).empty());
  ToReadyToSend(b, Attributes(b, a, 6, 5));
  EXPECT_THAT(b.AwaitReceives(1), ElementsAre(Received(1, 3000)));
  EXPECT_THAT(a.AwaitSends(1), ElementsAre(Done(2, CompletionOpcode::kSend)));
}

TEST_P(StatesTest, AQueuePairThatDoesNotExistDoesNotAnswer) {
  TOKAMAK_NEEDS(manual_modify);
  End a(backend(), 0), b(backend(), 1);
  QueuePairAttributes attributes = Attributes(a, b, 5, 6);
  attributes.peer_number = b.queue_pair->number() ^ 0x800000;
  ToReadyToSend(a, attributes);
  a.MustPost({Write(1, {}, 0, 0)});
  ExpectFault(a, Fault::kPeerVanished, 1);
}

TEST_P(StatesTest, ResetForgetsWhatWasPosted) {
  TOKAMAK_NEEDS(manual_modify);
  End a(backend(), 0), b(backend(), 1);
  WalkByHand(a, b, 5, 6);
  a.MustPostReceives({{1, {}}, {2, {}}});
  a.MustPost({Send(3, {})});
  MustModify(a, kReset, {});
  LookOn();
  EXPECT_TRUE(PollNow(*a.sends).empty());
  EXPECT_TRUE(PollNow(*a.receives).empty());
}

TEST_P(StatesTest, AfterAnErrorAQueuePairMayBeWalkedAgain) {
  TOKAMAK_NEEDS(manual_modify);
  End a(backend(), 0), b(backend(), 1);
  for (uint32_t round = 0; round < 3; ++round) {
    WalkByHand(a, b, 100 * round, 100 * round + 50);
    ExpectWorks(a, b);
    a.MustPostReceives({{7, {}}});
    for (End* end : {&a, &b}) MustModify(*end, kError, {});
    EXPECT_THAT(a.AwaitReceives(1), ElementsAre(Flushed(7)));
    for (End* end : {&a, &b}) {
      MustModify(*end, kReset, {});
      MustModify(*end, kInit, Attributes(a, b, 0, 0));
    }
  }
}

TEST_P(StatesTest, AtomicsAndImmediatesCrossTheWrapOnceEach) {
  TOKAMAK_NEEDS(manual_modify);
  TOKAMAK_NEEDS(atomics);
  TOKAMAK_NEEDS(immediate);
  constexpr uint64_t kCount = 16;
  End a(backend(), 0), b(backend(), 1);
  QueuePairAttributes of_a = Attributes(a, b, 0xfffff8, 0xfffff8, 256),
                      of_b = Attributes(b, a, 0xfffff8, 0xfffff8, 256);
  MustModify(b, kReset, {});
  of_b.remote_access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  MustModify(b, kInit, of_b);
  ToReadyToSend(a, of_a);
  ToReadyToSend(b, of_b);
  Memory result(*a.domain, 8, 1), word(*b.domain, 8, 2, kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
  std::fill(word.data(), word.data() + 8, uint8_t{0});
  for (uint64_t i = 0; i < kCount; ++i) b.MustPostReceives({{i, {}}});
  for (uint64_t i = 0; i < kCount; ++i) {
    a.MustPost({FetchAdd(2 * i, result.whole(), word.remote(), word.rkey(), 1),
                SendWithImm(2 * i + 1, {}, static_cast<uint32_t>(i))});
  }
  EXPECT_EQ(a.AwaitSends(2 * kCount).size(), 2 * kCount);
  const Completions received = b.AwaitReceives(kCount);
  for (uint32_t i = 0; i < received.size(); ++i) EXPECT_THAT(received[i], ReceivedImm(i, 0, i));
  EXPECT_EQ(word.bytes()[0], kCount);
  EXPECT_EQ(result.bytes()[0], kCount - 1);
}

// The connection manager agrees on what is served; by hand a side may ask for more, which the
// specification calls invalid.
TEST_P(StatesTest, MoreReadsThanThePeerServesAreDoneOrEndTheConnection) {
  TOKAMAK_NEEDS(manual_modify);
  constexpr uint64_t kCount = 12;
  constexpr size_t kSize = 30000;
  End a(backend(), 0), b(backend(), 1);
  QueuePairAttributes of_a = Attributes(a, b, 5, 6), of_b = Attributes(b, a, 6, 5);
  of_a.reliability.reads_outstanding = static_cast<uint8_t>(std::min(limits().max_reads, 12u));
  of_b.reliability.reads_served = 1;
  ToReadyToSend(a, of_a);
  ToReadyToSend(b, of_b);
  Memory to(*a.domain, kCount * kSize, 1), from(*b.domain, kCount * kSize, 2);
  for (uint64_t i = 0; i < kCount; ++i) {
    a.MustPost({Read(i, {to.piece(i * kSize, kSize)}, from.remote(i * kSize), from.rkey())});
  }
  const Completions done = a.AwaitSends(kCount);
  ASSERT_EQ(done.size(), kCount);
  uint64_t i = 0;
  for (; i < kCount && done[i].status == CompletionStatus::kSuccess; ++i) {
    EXPECT_THAT(done[i], Done(i, CompletionOpcode::kRead));
    EXPECT_TRUE(Same(to.bytes(i * kSize, kSize), from.bytes(i * kSize, kSize)));
  }
  if (i == kCount) return;
  EXPECT_TRUE(backend().Accepts(Fault::kTooManyReads, done[i].status)) << ToString(done[i].status);
  EXPECT_EQ(done[i].id, i);
  for (++i; i < kCount; ++i) EXPECT_THAT(done[i], Flushed(i));
  EXPECT_EQ(a.state(), kError);
}

}  // namespace
}  // namespace tokamak::verbs::conformance
