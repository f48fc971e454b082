// Dropping handles: in any order, with work in flight; and what a handle named is over when its
// destructor returns.
#include <algorithm>
#include <functional>

#include "lib/base/random.h"
#include "tests/verbs/conformance/service.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr auto kDisconnected = ConnectionEvent::Kind::kDisconnected;

class TeardownTest : public ConformanceTest {
 protected:
  // Keeps `end` writing into `to`, as much as its queue takes.
  static void WriteMore(End& end, Memory& from, Memory& to, uint32_t rkey) {
    while (end.Post({Write(1, {from.whole()}, to.remote(), rkey)}).ok()) {
    }
  }
  static void Scribble(Memory& memory) { memory.Fill(0xdead); }

  // Expects of a transfer from memory of pattern 1 into memory of pattern 2 that the peer got the
  // bytes from before the Scribble, or none.
  static void ExpectNothingForeign(const Memory& to) {
    const std::vector<uint8_t> sent = Pattern(1, to.size()), before = Pattern(2, to.size());
    size_t foreign = 0;
    for (size_t i = 0; i < to.size(); ++i) foreign += to.bytes()[i] != sent[i] && to.bytes()[i] != before[i];
    EXPECT_EQ(foreign, 0u);
  }
};
TOKAMAK_CONFORMANCE(TeardownTest);

// Both sides have work of all kinds in flight; then everything goes, each side in an order of its
// own. (A queue pair outlives its connection: that is ConnectionManager's only rule.)
TEST_P(TeardownTest, HandlesMayBeDroppedInAnyOrderWithWorkInFlight) {
  constexpr size_t kSize = 30000;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    auto pair = Connect();
    End* ends[] = {&pair->active, &pair->passive};
    std::unique_ptr<Memory> memory[2];
    for (size_t e = 0; e < 2; ++e) {
      memory[e] = std::make_unique<Memory>(*ends[e]->domain, 2 * kSize, e);
      for (uint64_t i = 0; i < 10; ++i) ends[e]->MustPostReceives({{i, {memory[e]->piece(0, kSize)}}});
      ends[e]->Arm(*ends[e]->sends);
      ends[e]->Arm(*ends[e]->receives);
    }
    for (uint64_t i = 0; i < 15; ++i) {
      for (size_t e = 0; e < 2; ++e) {
        const Sge piece = memory[e]->piece(kSize, kSize);
        Memory& peer = *memory[1 - e];
        ends[e]->MustPost({i % 3 == 0   ? Send(i, {piece})
                           : i % 3 == 1 ? Read(i, {piece}, peer.remote(kSize), peer.rkey())
                                        : Write(i, {piece}, peer.remote(), peer.rkey())});
      }
    }
    std::vector<std::function<void()>> drops;
    bool connection_gone[2] = {}, queue_pair_asked[2] = {};
    for (size_t e = 0; e < 2; ++e) {
      End& end = *ends[e];
      const auto drop_queue_pair = [&, e] {
        if (connection_gone[e]) end.queue_pair.reset();
        queue_pair_asked[e] = true;
      };
      drops.push_back(drop_queue_pair);
      drops.push_back([&, e] {
        end.connection.reset();
        connection_gone[e] = true;
        if (queue_pair_asked[e]) end.queue_pair.reset();
      });
      drops.push_back([&] { end.sends.reset(); });
      drops.push_back([&] { end.receives.reset(); });
      drops.push_back([&] { end.domain.reset(); });
      drops.push_back([&, e] { memory[e].reset(); });
    }
    for (size_t i = drops.size(); i > 1; --i) std::swap(drops[i - 1], drops[random.Below(i)]);
    for (const auto& drop : drops) {
      if (random.Chance(0.5)) {
        backend().Drive([] { return false; }, base::Microseconds(static_cast<int64_t>(random.Below(100))));
      }
      drop();
    }
    LookOn();
  }
  // The devices are still good.
  auto pair = Connect();
  ExpectWorks(pair->active, pair->passive);
}

TEST_P(TeardownTest, NoByteOfARegionChangesAfterItWasDroppedWhileThePeerWrites) {
  TOKAMAK_NEEDS(drop_stops_transfers);
  constexpr size_t kSize = 100000;
  for (int round = 0; round < 5; ++round) {
    auto pair = Connect();
    Memory from(*pair->active.domain, kSize, 1), to(*pair->passive.domain, kSize, 2);
    const uint32_t rkey = to.rkey();
    WriteMore(pair->active, from, to, rkey);
    EXPECT_EQ(pair->active.AwaitSends(1 + round).size(), 1u + round);
    to.Deregister();
    to.Fill(3);

    // The writer, who goes on, learns it.
    Completion first_failure;
    EXPECT_TRUE(Drive([&] {
      for (const Completion& completion : PollNow(*pair->active.sends)) {
        if (first_failure.status == CompletionStatus::kSuccess) first_failure = completion;
      }
      if (first_failure.status != CompletionStatus::kSuccess) return true;
      WriteMore(pair->active, from, to, rkey);
      return false;
    })) << backend().Counters();
    EXPECT_TRUE(backend().Accepts(Fault::kRemoteKey, first_failure.status)) << ToString(first_failure.status);
    LookOn();
    EXPECT_TRUE(to.Untouched());
  }
}

TEST_P(TeardownTest, NoByteOfASinkChangesAfterItWasDroppedInMidRead) {
  TOKAMAK_NEEDS(drop_stops_transfers);
  constexpr size_t kSize = 1 << 20;
  auto pair = Connect();
  Memory to(*pair->active.domain, kSize, 1), from(*pair->passive.domain, kSize, 2);
  pair->active.MustPost(
      {Read(1, {to.piece(0, 8)}, from.remote(), from.rkey()), Read(2, {to.whole()}, from.remote(), from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kRead)));
  to.Deregister();
  to.Fill(3);
  LookOn();
  EXPECT_TRUE(to.Untouched());
  const Completions done = pair->active.AwaitSends(1);
  ASSERT_EQ(done.size(), 1u);
  if (done[0].status == CompletionStatus::kSuccess) return;  // it was faster
  EXPECT_TRUE(backend().Accepts(Fault::kLocalKey, done[0].status)) << ToString(done[0].status);
}

TEST_P(TeardownTest, NoByteOfAReceiveChangesAfterItsRegionWasDropped) {
  TOKAMAK_NEEDS(drop_stops_transfers);
  constexpr size_t kSize = 100000;
  auto pair = Connect();
  Memory from(*pair->active.domain, kSize, 1), to(*pair->passive.domain, kSize, 2);
  for (uint64_t i = 0; i < 20; ++i) pair->passive.MustPostReceives({{i, {to.whole()}}});
  for (uint64_t i = 0; i < 20; ++i) pair->active.MustPost({Send(i, {from.whole()})});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(0, kSize)));
  to.Deregister();
  to.Fill(3);
  LookOn();
  EXPECT_TRUE(to.Untouched());
}

// The peer gets only bytes from before the drop: bytes written into the memory afterwards never
// leave.
TEST_P(TeardownTest, NoByteLeavesARegionAfterItWasDropped) {
  TOKAMAK_NEEDS(drop_stops_transfers);
  constexpr size_t kSize = 1 << 20;
  auto pair = Connect();
  Memory from(*pair->active.domain, kSize, 1), to(*pair->passive.domain, kSize, 2);
  pair->active.MustPost(
      {Write(1, {from.piece(0, 8)}, to.remote(), to.rkey()), Write(2, {from.whole()}, to.remote(), to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kWrite)));
  from.Deregister();
  Scribble(from);
  LookOn();
  const Completions done = pair->active.AwaitSends(1);
  ASSERT_EQ(done.size(), 1u);
  if (done[0].status != CompletionStatus::kSuccess) {
    EXPECT_TRUE(backend().Accepts(Fault::kLocalKey, done[0].status)) << ToString(done[0].status);
  }
  pair->active.connection.reset();
  EXPECT_TRUE(Drive([&] { return pair->passive.Saw(kDisconnected); }));
  ExpectNothingForeign(to);
}

TEST_P(TeardownTest, NoByteLeavesARegionAfterItWasDroppedWhileThePeerReads) {
  TOKAMAK_NEEDS(drop_stops_transfers);
  constexpr size_t kSize = 1 << 20;
  auto pair = Connect();
  Memory to(*pair->active.domain, kSize, 2), from(*pair->passive.domain, kSize, 1);
  pair->active.MustPost(
      {Read(1, {to.piece(0, 8)}, from.remote(), from.rkey()), Read(2, {to.whole()}, from.remote(), from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kRead)));
  from.Deregister();
  Scribble(from);
  const Completions done = pair->active.AwaitSends(1);
  ASSERT_EQ(done.size(), 1u);
  if (done[0].status != CompletionStatus::kSuccess) {
    EXPECT_TRUE(backend().Accepts(Fault::kRemoteKey, done[0].status)) << ToString(done[0].status);
  }
  LookOn();
  ExpectNothingForeign(to);
}

// The regions live on: that the queue pair is gone is enough, on devices without
// drop_stops_transfers too.
TEST_P(TeardownTest, NoByteOfASinkChangesAfterTheQueuePairWasDroppedInMidRead) {
  constexpr size_t kSize = 1 << 20;
  auto pair = Connect();
  Memory to(*pair->active.domain, kSize, 1), from(*pair->passive.domain, kSize, 2);
  pair->active.MustPost(
      {Read(1, {to.piece(0, 8)}, from.remote(), from.rkey()), Read(2, {to.whole()}, from.remote(), from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kRead)));
  pair->active.connection.reset();
  pair->active.queue_pair.reset();
  to.Fill(3);
  LookOn();
  EXPECT_TRUE(to.Untouched());
}

TEST_P(TeardownTest, NoByteOfARegionChangesAfterTheQueuePairWasDroppedWhileThePeerWrites) {
  constexpr size_t kSize = 100000;
  auto pair = Connect();
  Memory from(*pair->active.domain, kSize, 1), to(*pair->passive.domain, kSize, 2);
  WriteMore(pair->active, from, to, to.rkey());
  EXPECT_EQ(pair->active.AwaitSends(1).size(), 1u);
  pair->passive.connection.reset();
  pair->passive.queue_pair.reset();
  to.Fill(3);
  LookOn();
  EXPECT_TRUE(to.Untouched());
}

TEST_P(TeardownTest, NoByteLeavesARegionAfterTheQueuePairWasDroppedInMidWrite) {
  constexpr size_t kSize = 1 << 20;
  auto pair = Connect();
  Memory from(*pair->active.domain, kSize, 1), to(*pair->passive.domain, kSize, 2);
  pair->active.MustPost(
      {Write(1, {from.piece(0, 8)}, to.remote(), to.rkey()), Write(2, {from.whole()}, to.remote(), to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kWrite)));
  pair->active.connection.reset();
  pair->active.queue_pair.reset();
  Scribble(from);
  EXPECT_TRUE(Drive([&] { return pair->passive.Saw(kDisconnected); }));
  LookOn();
  ExpectNothingForeign(to);
}

TEST_P(TeardownTest, NoByteLeavesARegionAfterTheQueuePairWasDroppedWhileThePeerReads) {
  constexpr size_t kSize = 1 << 20;
  auto pair = Connect();
  Memory to(*pair->active.domain, kSize, 2), from(*pair->passive.domain, kSize, 1);
  pair->active.MustPost(
      {Read(1, {to.piece(0, 8)}, from.remote(), from.rkey()), Read(2, {to.whole()}, from.remote(), from.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kRead)));
  pair->passive.connection.reset();
  pair->passive.queue_pair.reset();
  Scribble(from);
  EXPECT_EQ(pair->active.AwaitSends(1).size(), 1u);
  LookOn();
  ExpectNothingForeign(to);
}

TEST_P(TeardownTest, NoCompletionOfAQueuePairIsPolledAfterItWasDropped) {
  End home(backend(), 0), peer(backend(), 1);
  auto doomed = std::make_unique<End>(backend(), 0, EndOptions(), &home);
  End other(backend(), 0, EndOptions(), &home), peer_of_other(backend(), 1, EndOptions(), &peer);
  ASSERT_NO_FATAL_FAILURE(Establish(backend(), *doomed, peer, ConnectDefaults(), ConnectDefaults()));
  ASSERT_NO_FATAL_FAILURE(Establish(backend(), other, peer_of_other, ConnectDefaults(), ConnectDefaults()));
  const uint32_t number = doomed->queue_pair->number();
  for (uint64_t i = 0; i < 5; ++i) doomed->MustPost({Write(i, {}, 0, 0)});
  other.MustPost({Write(100, {}, 0, 0)});
  LookOn();  // these have completed and wait
  doomed->MustPostReceives({{50, {}}});
  doomed->MustPost({Send(6, {})});  // and this waits for a receive
  doomed.reset();
  other.MustPost({Write(101, {}, 0, 0)});
  EXPECT_THAT(home.AwaitSends(2),
              ElementsAre(Done(100, CompletionOpcode::kWrite), Done(101, CompletionOpcode::kWrite)));
  LookOn();
  for (CompletionQueue* queue : {home.sends.get(), home.receives.get()}) {
    for (const Completion& completion : PollNow(*queue)) EXPECT_NE(completion.queue_pair_number, number);
  }
}

TEST_P(TeardownTest, ADroppedCompletionQueueRaisesNoEvent) {
  auto pair = Connect();
  pair->passive.MustPostReceives({{1, {}}});
  pair->passive.Arm(*pair->passive.receives);
  pair->active.MustPost({Send(1, {})});
  pair->passive.connection.reset();
  pair->passive.queue_pair.reset();
  pair->passive.receives.reset();
  const int before = pair->passive.receive_events;
  LookOn();
  EXPECT_EQ(pair->passive.receive_events, before);
}

TEST_P(TeardownTest, ACompletionQueueMayBeDroppedInsideItsEvent) {
  auto pair = Connect();
  End& end = pair->passive;
  end.MustPostReceives({{1, {}}});
  end.on_receive_event = [&] {
    end.connection.reset();
    end.queue_pair.reset();
    end.receives.reset();
  };
  end.Arm(*end.receives);
  pair->active.MustPost({Send(1, {})});
  EXPECT_TRUE(Drive([&] { return end.receives == nullptr; }));
  LookOn();
}

TEST_P(TeardownTest, ThePeerOfADroppedEndIsToldThoughWorkWasInFlight) {
  constexpr size_t kSize = 100000;
  auto pair = Connect();
  Memory from(*pair->active.domain, kSize, 1), to(*pair->passive.domain, kSize, 2);
  WriteMore(pair->active, from, to, to.rkey());
  pair->passive.connection.reset();
  pair->passive.queue_pair.reset();
  EXPECT_TRUE(Drive([&] { return pair->active.Saw(kDisconnected); }));
  EXPECT_EQ(pair->active.state(), QueuePairState::kError);
}

TEST_P(TeardownTest, AQueuePairOutlivesItsDomainAndQueues) {
  // The handles are gone, what they named lives on inside: requests are still carried out.
  constexpr size_t kPiece = 16;
  auto pair = Connect();
  const size_t size = kPiece * pair->passive.options.max_send_requests;
  Memory from(*pair->active.domain, 100, 1), to(*pair->passive.domain, 100, 2);
  Memory back_from(*pair->passive.domain, size, 3), back_to(*pair->active.domain, size, 4);
  pair->active.domain.reset();
  pair->passive.domain.reset();
  pair->active.MustPost({Write(1, {from.whole()}, to.remote(), to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kWrite)));
  EXPECT_TRUE(to.Holds(1));

  // Nobody polls the passive side's queues any more: it uses up its slots, and what it was given is
  // done.
  End& passive = pair->passive;
  passive.sends.reset();
  passive.receives.reset();
  const size_t slots = passive.options.max_send_requests, last = back_to.size() - 1;
  ASSERT_NE(back_to.bytes()[last], back_from.bytes()[last]);
  for (size_t i = 0; i < slots; ++i) {
    passive.MustPost({Write(i, {back_from.piece(i * kPiece, kPiece)}, back_to.remote(i * kPiece), back_to.rkey())});
  }
  EXPECT_TRUE(absl::IsResourceExhausted(
      passive.Post({Write(slots, {back_from.piece(0, kPiece)}, back_to.remote(), back_to.rkey())}).status));
  EXPECT_TRUE(Drive([&] { return back_to.Peek(last) == back_from.bytes()[last]; }));

  // The peer's access through it goes on.
  to.Fill(2);
  pair->active.MustPost({Write(2, {from.whole()}, to.remote(), to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(2, CompletionOpcode::kWrite)));
  EXPECT_TRUE(to.Holds(1));
  EXPECT_TRUE(back_to.Holds(3));
}

TEST_P(TeardownTest, AWatchMayBeDroppedAtAnyTime) {
  auto watch = backend().device(0).Watch(backend().loop(0), [](const DeviceEventInfo&) {});
  LookOn();
  watch.reset();
  LookOn();
}

}  // namespace
}  // namespace tokamak::verbs::conformance
