// Connections that come and go: who connects, rejects, drops and disconnects, and what each side
// hears of it.
#include "tests/verbs/soft/cm/connection_manager_fixture.h"

namespace tokamak::verbs::soft {
namespace {

TEST_F(ConnectionManagerTest, ConnectsWithThreeMessages) {
  End active(*a_), passive(*b_);
  auto listener = Listen(*b_);
  ConnectOptions options;
  options.private_data = Bytes("question");
  ASSERT_TRUE(active.Connect(At(*b_), options).ok());
  Run(Milliseconds(1));
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0]->peer().ip, a_->address().ip);
  EXPECT_NE(requests_[0]->peer().port, 0);
  EXPECT_EQ(requests_[0]->private_data().size(), 56u);
  EXPECT_EQ(requests_[0]->private_data().first(8), Bytes("question"));

  options.private_data = Bytes("answer");
  ASSERT_TRUE(passive.Accept(*requests_[0], options).ok());
  EXPECT_EQ(passive.queue_pair->state(), QueuePairState::kReadyToReceive);
  EXPECT_THAT(passive.events, IsEmpty());
  Run(Milliseconds(1));

  EXPECT_THAT(active.events, ElementsAre(Kind::kEstablished));
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished));
  EXPECT_EQ(active.text, "answer");
  EXPECT_EQ(active.path_mtu, 4096u);
  EXPECT_EQ(active.connection->peer(), At(*b_));
  EXPECT_EQ(active.queue_pair->state(), QueuePairState::kReadyToSend);
  EXPECT_EQ(passive.queue_pair->state(), QueuePairState::kReadyToSend);
  EXPECT_EQ(wire_.Names(), "REQ REP RTU");
  Run(Seconds(60));
  EXPECT_EQ(wire_.Names(), "REQ REP RTU");
}

TEST_F(ConnectionManagerTest, EachSideSendsWithThePsnThatTheOtherExpects) {
  End active(*a_), passive(*b_);
  Establish(active, passive);
  const QueuePairAttributes& a = active.queue_pair->attributes();
  const QueuePairAttributes& b = passive.queue_pair->attributes();
  EXPECT_EQ(a.send_psn, b.receive_psn);
  EXPECT_EQ(b.send_psn, a.receive_psn);
  EXPECT_NE(a.send_psn, a.receive_psn);
  EXPECT_EQ(a.peer_number, passive.queue_pair->number());
  EXPECT_EQ(b.peer_number, active.queue_pair->number());
  EXPECT_EQ(a.peer.ip, b_->address().ip);
  EXPECT_EQ(b.peer.ip, a_->address().ip);
}

TEST_F(ConnectionManagerTest, ReadDepthIsWhatBothSidesHave) {
  End active(*a_), passive(*b_);
  auto listener = Listen(*b_);
  ConnectOptions options;
  options.reliability.reads_outstanding = 200;  // more than the device has
  options.reliability.reads_served = 3;
  ASSERT_TRUE(active.Connect(At(*b_), options).ok());
  Run(Milliseconds(1));
  options.reliability.reads_outstanding = 5;
  options.reliability.reads_served = 7;
  ASSERT_TRUE(passive.Accept(*requests_[0], options).ok());
  Run(Milliseconds(1));
  EXPECT_EQ(active.queue_pair->attributes().reliability.reads_outstanding, 7);
  EXPECT_EQ(passive.queue_pair->attributes().reliability.reads_served, 7);
  EXPECT_EQ(passive.queue_pair->attributes().reliability.reads_outstanding, 3);
  EXPECT_EQ(active.queue_pair->attributes().reliability.reads_served, 3);
}

TEST_F(ConnectionManagerTest, RejectionCarriesPrivateData) {
  End active(*a_);
  auto listener = Listen(*b_);
  ASSERT_TRUE(active.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  requests_[0]->Reject(Bytes("version 2 wanted"));
  EXPECT_FALSE(requests_[0]->Accept(*b_->MakeQueuePair(), {}, nullptr).ok());
  Run(Milliseconds(1));
  EXPECT_THAT(active.events, ElementsAre(Kind::kRejected));
  EXPECT_EQ(active.text, "version 2 wanted");
  EXPECT_THAT(active.status.ToString(), HasSubstr("10.0.0.2:7000 refused"));
  EXPECT_EQ(active.queue_pair->state(), QueuePairState::kError);
}

TEST_F(ConnectionManagerTest, DroppingARequestRejects) {
  End active(*a_);
  auto listener = Listen(*b_);
  ASSERT_TRUE(active.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  requests_.clear();
  Run(Milliseconds(1));
  EXPECT_THAT(active.events, ElementsAre(Kind::kRejected));
}

TEST_F(ConnectionManagerTest, AMissingListenerIsReportedWithAddressAndRemedy) {
  End active(*a_);
  ASSERT_TRUE(active.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  EXPECT_THAT(active.events, ElementsAre(Kind::kRejected));
  EXPECT_TRUE(absl::IsUnavailable(active.status));
  EXPECT_THAT(active.status.ToString(), HasSubstr("nobody listens at 10.0.0.2:7000: start the service"));
}

TEST_F(ConnectionManagerTest, NothingIsSentToAGroup) {
  for (const char* const group : {"224.0.0.251:7000@5353", "255.255.255.255:7000"}) {
    End active(*a_);
    const absl::Status status = active.Connect(*Address::Parse(group));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << group;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the address of one device"));
  }
  Run(Seconds(10));
  EXPECT_EQ(wire_.Names(), "");
}

TEST_F(ConnectionManagerTest, ASilentPeerIsUnreachableAtTheDeadline) {
  End active(*a_);
  ConnectOptions options;
  options.deadline = Milliseconds(900);
  ASSERT_TRUE(active.Connect(FakeAddress(77, kPort), options).ok());
  Run(Milliseconds(899));
  EXPECT_THAT(active.events, IsEmpty());
  Run(Milliseconds(2));
  EXPECT_THAT(active.events, ElementsAre(Kind::kUnreachable));
  EXPECT_THAT(active.status.ToString(), HasSubstr("10.0.0.77:7000 did not answer 3 connection requests in 0.9 s"));
  EXPECT_EQ(active.queue_pair->state(), QueuePairState::kError);
}

TEST_F(ConnectionManagerTest, ATooLargeMtuIsRetriedWithASmallerOne) {
  auto small = std::make_shared<FakeNic>(scheduler_, wire_, 3, 1024);
  End active(*a_), passive(*small);
  auto listener = Listen(*small);
  ASSERT_TRUE(active.Connect(At(*small)).ok());
  Run(Milliseconds(1));
  ASSERT_EQ(requests_.size(), 1u);
  ASSERT_TRUE(passive.Accept(*requests_[0]).ok());
  Run(Milliseconds(1));
  EXPECT_EQ(wire_.Names(), "REQ REJ REQ REP RTU");
  EXPECT_EQ(active.path_mtu, 1024u);
  EXPECT_EQ(passive.path_mtu, 1024u);
  EXPECT_EQ(passive.queue_pair->attributes().path_mtu, 1024u);
}

TEST_F(ConnectionManagerTest, AcceptWithASmallerMtuMakesThePeerAskAgain) {
  End active(*a_), passive(*b_);
  auto listener = Listen(*b_);
  ASSERT_TRUE(active.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  ConnectOptions options;
  options.max_path_mtu = 512;
  const absl::Status refused = passive.Accept(*requests_[0], options);
  EXPECT_THAT(refused.ToString(), HasSubstr("told to ask again"));
  requests_.clear();
  Run(Milliseconds(1));
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_TRUE(passive.Accept(*requests_[0], options).ok());
  Run(Milliseconds(1));
  EXPECT_THAT(active.events, ElementsAre(Kind::kEstablished));
  EXPECT_EQ(active.path_mtu, 512u);
}

TEST_F(ConnectionManagerTest, EitherSideDisconnectsByDropping) {
  for (const bool active_drops : {true, false}) {
    End active(*a_), passive(*b_);
    Establish(active, passive);
    End& dropper = active_drops ? active : passive;
    End& other = active_drops ? passive : active;
    dropper.connection.reset();
    EXPECT_EQ(dropper.queue_pair->state(), QueuePairState::kError);
    Run(Milliseconds(1));
    EXPECT_EQ(wire_.Names(), "DREQ DREP");
    EXPECT_THAT(other.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
    EXPECT_EQ(other.queue_pair->state(), QueuePairState::kError);
    EXPECT_THAT(dropper.events, ElementsAre(Kind::kEstablished));
    other.connection.reset();
    Run(Seconds(5));
    EXPECT_EQ(wire_.Names(), "DREQ DREP");
    EXPECT_EQ(a_->manager->connections(), 0u);
    EXPECT_EQ(b_->manager->connections(), 0u);
  }
}

TEST_F(ConnectionManagerTest, BothDropAtOnce) {
  End active(*a_), passive(*b_);
  Establish(active, passive);
  active.connection.reset();
  passive.connection.reset();
  Run(Seconds(5));
  EXPECT_EQ(a_->manager->connections(), 0u);
  EXPECT_EQ(b_->manager->connections(), 0u);
}

TEST_F(ConnectionManagerTest, AHandlerMayDropItsConnection) {
  End active(*a_), passive(*b_);
  auto listener = Listen(*b_);
  active.on_event = [&] { active.connection.reset(); };
  ASSERT_TRUE(active.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  ASSERT_TRUE(passive.Accept(*requests_[0]).ok());
  Run(Milliseconds(1));
  EXPECT_THAT(active.events, ElementsAre(Kind::kEstablished));
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
}

TEST_F(ConnectionManagerTest, NoEventComesAfterTheHandleIsDropped) {
  End active(*a_), passive(*b_);
  Establish(active, passive);
  b_->owner.Spend(Milliseconds(10));  // too busy to hear of it
  active.connection.reset();
  Run(Milliseconds(1));
  EXPECT_EQ(passive.queue_pair->state(), QueuePairState::kError);
  passive.connection.reset();
  Run(Seconds(1));
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished));
}

TEST_F(ConnectionManagerTest, AFailedQueuePairIsADisconnection) {
  End active(*a_), passive(*b_);
  Establish(active, passive);
  a_->Fail(active.queue_pair->number());
  Run(Milliseconds(1));
  EXPECT_THAT(active.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
  EXPECT_FALSE(active.status.ok());
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished));
  active.connection.reset();
  Run(Milliseconds(1));
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
}

TEST_F(ConnectionManagerTest, ADroppedQueuePairIsADisconnection) {
  End active(*a_), passive(*b_);
  Establish(active, passive);
  active.queue_pair.reset();
  Run(Milliseconds(2200));
  EXPECT_THAT(active.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
  active.connection.reset();
  Run(Seconds(5));
}

TEST_F(ConnectionManagerTest, TheNumberOfAQueuePairIsHeldThroughTimeWait) {
  End active(*a_), passive(*b_);
  Establish(active, passive);
  const uint32_t number = active.queue_pair->number();
  active.connection.reset();
  active.queue_pair.reset();
  Run(Seconds(2));
  EXPECT_EQ(a_->held.count(number), 1u);
  Run(Milliseconds(200));
  EXPECT_EQ(a_->held.count(number), 0u);
}

TEST_F(ConnectionManagerTest, ALostRtuIsHealedByFirstData) {
  End active(*a_), passive(*b_);
  auto listener = Listen(*b_);
  wire_.filter = [](const Mad& mad) {
    return std::holds_alternative<RtuMad>(mad.body) ? std::vector<Duration>() : std::vector<Duration>{Microseconds(1)};
  };
  ASSERT_TRUE(active.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  ASSERT_TRUE(passive.Accept(*requests_[0]).ok());
  Run(Milliseconds(1));
  EXPECT_THAT(passive.events, IsEmpty());
  b_->FirstData(passive.queue_pair->number());
  Run(Milliseconds(1));
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished));
  EXPECT_EQ(passive.queue_pair->state(), QueuePairState::kReadyToSend);
}

TEST_F(ConnectionManagerTest, ConnectionsInBothDirectionsAreIndependent) {
  End a1(*a_), a2(*a_), b1(*b_), b2(*b_);
  auto listener_a = Listen(*a_);
  auto listener_b = Listen(*b_);
  ASSERT_TRUE(a1.Connect(At(*b_)).ok());
  ASSERT_TRUE(b1.Connect(At(*a_)).ok());
  Run(Milliseconds(1));
  ASSERT_EQ(requests_.size(), 2u);
  for (auto& request : requests_) {
    End& end = request->peer().ip == a_->address().ip ? b2 : a2;
    ASSERT_TRUE(end.Accept(*request).ok());
  }
  Run(Milliseconds(1));
  for (const End* end : {&a1, &a2, &b1, &b2}) EXPECT_THAT(end->events, ElementsAre(Kind::kEstablished));
  EXPECT_EQ(a1.queue_pair->attributes().peer_number, b2.queue_pair->number());
  EXPECT_EQ(b1.queue_pair->attributes().peer_number, a2.queue_pair->number());
}

TEST_F(ConnectionManagerTest, ADeviceConnectsToItself) {
  End active(*a_), passive(*a_);
  Establish(active, passive);
  active.connection.reset();
  Run(Milliseconds(1));
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
}

TEST_F(ConnectionManagerTest, AHundredConnections) {
  std::vector<std::unique_ptr<End>> active, passive;
  std::unique_ptr<Listener> listener =
      *b_->manager->Listen(b_->owner, At(*b_), [&](std::unique_ptr<ConnectionRequest> request) {
        passive.push_back(std::make_unique<End>(*b_));
        EXPECT_TRUE(passive.back()->Accept(*request).ok());
      });
  for (int i = 0; i < 100; ++i) {
    active.push_back(std::make_unique<End>(*a_));
    ASSERT_TRUE(active.back()->Connect(At(*b_)).ok());
    if (i % 50 == 49) Run(Milliseconds(1));
  }
  ASSERT_EQ(passive.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(active[i]->events, ElementsAre(Kind::kEstablished));
    EXPECT_THAT(passive[i]->events, ElementsAre(Kind::kEstablished));
  }
  active.clear();
  Run(Milliseconds(1));
  for (const auto& end : passive) EXPECT_THAT(end->events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
}

}  // namespace
}  // namespace tokamak::verbs::soft
