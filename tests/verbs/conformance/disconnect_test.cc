// The end of a connection: whichever side drops it, both queue pairs are in Error, their work comes
// back, and the peer gets an event.
#include <algorithm>

#include "tests/verbs/conformance/service.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr auto kConnected = ConnectionEvent::Kind::kEstablished;
constexpr auto kDisconnected = ConnectionEvent::Kind::kDisconnected;

class DisconnectTest : public ConformanceTest {
 protected:
  // All of `ids` came back, in order: successes first, then at most one other failure, then
  // flushes.
  static void ExpectWoundUp(const Completions& completions, uint64_t first_id) {
    bool ended = false;
    for (size_t i = 0; i < completions.size(); ++i) {
      EXPECT_EQ(completions[i].id, first_id + i);
      if (ended) {
        EXPECT_EQ(completions[i].status, CompletionStatus::kFlushed) << "completion " << i;
      } else {
        ended = completions[i].status != CompletionStatus::kSuccess;
      }
    }
  }
};
TOKAMAK_CONFORMANCE(DisconnectTest);

TEST_P(DisconnectTest, ThePassiveSideIsToldThatTheActiveSideLeft) {
  auto pair = Connect();
  pair->active.connection.reset();
  EXPECT_TRUE(Drive([&] { return pair->passive.Saw(kDisconnected); }));
  EXPECT_EQ(pair->passive.state(), QueuePairState::kError);
  EXPECT_EQ(pair->active.state(), QueuePairState::kError);
  EXPECT_THAT(pair->passive.events, ElementsAre(kConnected, kDisconnected));
  EXPECT_THAT(pair->active.events, ElementsAre(kConnected));
}

TEST_P(DisconnectTest, TheActiveSideIsToldThatThePassiveSideLeft) {
  auto pair = Connect();
  pair->passive.connection.reset();
  EXPECT_TRUE(Drive([&] { return pair->active.Saw(kDisconnected); }));
  EXPECT_EQ(pair->active.state(), QueuePairState::kError);
  EXPECT_EQ(pair->passive.state(), QueuePairState::kError);
  EXPECT_THAT(pair->active.events, ElementsAre(kConnected, kDisconnected));
  EXPECT_THAT(pair->passive.events, ElementsAre(kConnected));
}

TEST_P(DisconnectTest, BothSidesMayLeaveAtOnce) {
  auto pair = Connect();
  pair->active.connection.reset();
  pair->passive.connection.reset();
  LookOn();
  EXPECT_EQ(pair->active.state(), QueuePairState::kError);
  EXPECT_EQ(pair->passive.state(), QueuePairState::kError);
  EXPECT_THAT(pair->active.events, ElementsAre(kConnected));
  EXPECT_THAT(pair->passive.events, ElementsAre(kConnected));
}

TEST_P(DisconnectTest, PostedReceivesOfBothSidesAreFlushedInOrder) {
  auto pair = Connect();
  for (End* end : {&pair->active, &pair->passive}) end->MustPostReceives({{1, {}}, {2, {}}, {3, {}}});
  pair->active.connection.reset();
  EXPECT_THAT(pair->active.AwaitReceives(3), ElementsAre(Flushed(1), Flushed(2), Flushed(3)));
  EXPECT_THAT(pair->passive.AwaitReceives(3), ElementsAre(Flushed(1), Flushed(2), Flushed(3)));
}

TEST_P(DisconnectTest, WorkInFlightOfBothSidesComesBack) {
  constexpr size_t kCount = 30, kSize = 20000;
  auto pair = Connect();
  std::vector<std::unique_ptr<Memory>> memory;
  End* ends[] = {&pair->active, &pair->passive};
  for (End* end : ends) {
    memory.push_back(std::make_unique<Memory>(*end->domain, 2 * kSize, 1));
    for (uint64_t i = 0; i < kCount; ++i) end->MustPostReceives({{1000 + i, {memory.back()->piece(0, kSize)}}});
  }
  for (uint64_t i = 0; i < kCount; ++i) {
    for (size_t e = 0; e < 2; ++e) {
      const Sge piece = memory[e]->piece(kSize, kSize);
      Memory& peer = *memory[1 - e];
      ends[e]->MustPost({i % 3 == 0   ? Send(i, {piece})
                         : i % 3 == 1 ? Read(i, {piece}, peer.remote(kSize), peer.rkey())
                                      : Write(i, {piece}, peer.remote(), peer.rkey())});
    }
  }
  pair->passive.connection.reset();
  for (End* end : ends) {
    ExpectWoundUp(end->AwaitSends(kCount), 0);
    ExpectWoundUp(end->AwaitReceives(kCount), 1000);
    EXPECT_EQ(end->state(), QueuePairState::kError);
  }
  EXPECT_TRUE(Drive([&] { return pair->active.Saw(kDisconnected); }));
}

TEST_P(DisconnectTest, ADropInsideTheHandlerIsAllowed) {
  for (size_t leaver : {0, 1}) {
    SCOPED_TRACE(testing::Message() << "side " << leaver << " leaves");
    auto pair = Connect();
    End& stays = leaver == 0 ? pair->passive : pair->active;
    End& leaves = leaver == 0 ? pair->active : pair->passive;
    stays.on_event = [&](const ConnectionEvent&) { stays.connection.reset(); };
    leaves.connection.reset();
    EXPECT_TRUE(Drive([&] { return stays.Saw(kDisconnected); }));
    LookOn();
    EXPECT_THAT(stays.events, ElementsAre(kConnected, kDisconnected));
  }
}

TEST_P(DisconnectTest, AConnectionMayBeDroppedAsSoonAsItIsUp) {
  End active(backend(), 0), passive(backend(), 1);
  Service service(backend(), 1);
  service.accept_with = [&]() -> End& { return passive; };
  service.accept_options = ConnectDefaults();
  active.on_event = [&](const ConnectionEvent&) { active.connection.reset(); };
  ASSERT_TRUE(active.Connect(service.address(), ConnectDefaults()).ok());
  EXPECT_TRUE(Drive([&] { return active.Saw(kConnected) && passive.Saw(kDisconnected); })) << backend().Counters();
  EXPECT_EQ(passive.state(), QueuePairState::kError);
}

TEST_P(DisconnectTest, AfterALeaveTheDevicesConnectAgain) {
  for (int round = 0; round < 10; ++round) {
    auto pair = Connect();
    ExpectWorks(pair->active, pair->passive);
    End& leaver = round % 2 == 0 ? pair->active : pair->passive;
    End& other = round % 2 == 0 ? pair->passive : pair->active;
    leaver.connection.reset();
    EXPECT_TRUE(Drive([&] { return other.Saw(kDisconnected); }));
  }
}

TEST_P(DisconnectTest, AMessageThatWasAcknowledgedBeforeTheLeaveHasArrived) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 10000, 1), to(*pair->passive.domain, 10000, 2);
  pair->passive.MustPostReceives({{1, {to.whole()}}, {2, {}}});
  pair->active.MustPost({Send(1, {from.whole()})});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kSend)));
  pair->active.connection.reset();
  EXPECT_THAT(pair->passive.AwaitReceives(2), ElementsAre(Received(1, 10000), Flushed(2)));
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(DisconnectTest, OneConnectionsEndLeavesItsNeighboursAlone) {
  auto pair = Connect();
  auto neighbour = Connect();
  pair->active.connection.reset();
  EXPECT_TRUE(Drive([&] { return pair->passive.Saw(kDisconnected); }));
  ExpectWorks(neighbour->active, neighbour->passive);
  EXPECT_THAT(neighbour->active.events, ElementsAre(kConnected));
}

TEST_P(DisconnectTest, LeavingAPeerThatVanishedHarmsNobody) {
  auto pair = Connect();
  pair->active.MustPostReceives({{1, {}}});
  if (!backend().Vanish(pair->passive.index)) GTEST_SKIP() << "skipped: backend lacks Backend::Vanish";
  pair->active.connection.reset();
  EXPECT_THAT(pair->active.AwaitReceives(1), ElementsAre(Flushed(1)));
  LookOn();
  EXPECT_THAT(pair->active.events, ElementsAre(kConnected));
}

TEST_P(DisconnectTest, AQueuePairThatWasResetConnectsAgain) {
  TOKAMAK_NEEDS(manual_modify);
  End active(backend(), 0), passive(backend(), 1);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    ASSERT_NO_FATAL_FAILURE(Establish(backend(), active, passive, ConnectDefaults(), ConnectDefaults()));
    ExpectWorks(active, passive);
    active.connection.reset();
    ASSERT_TRUE(Drive([&] { return passive.Saw(kDisconnected); }));
    passive.connection.reset();
    for (End* end : {&active, &passive}) {
      QueuePairAttributes attributes;
      attributes.remote_access = end->options.remote_access;
      EXPECT_TRUE(end->queue_pair->Modify(QueuePairState::kReset).ok());
      EXPECT_TRUE(end->queue_pair->Modify(QueuePairState::kInit, attributes).ok());
      end->events.clear();
    }
  }
}

}  // namespace
}  // namespace tokamak::verbs::conformance
