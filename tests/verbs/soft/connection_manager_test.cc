#include "lib/verbs/soft/connection_manager.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/verbs/soft/fake_nic.h"

namespace tokamak::verbs::soft {
namespace {

using base::Duration;
using base::Microseconds;
using base::Milliseconds;
using base::Seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = ConnectionEvent::Kind;

constexpr uint16_t kPort = 7000;

// One side of a connection and what it is told.
struct End {
  explicit End(FakeNic& on) : nic(on), queue_pair(on.MakeQueuePair()) {}

  ConnectionHandler Handler() {
    return [this](const ConnectionEvent& event) {
      EXPECT_FALSE(in_call);
      events.push_back(event.kind);
      status = event.status;
      text.assign(event.private_data.begin(), event.private_data.end());
      text.resize(std::min(text.size(), text.find_last_not_of('\0') + 1));
      path_mtu = event.path_mtu;
      if (on_event) on_event();
    };
  }

  absl::Status Connect(const Address& address, const ConnectOptions& options = {}) {
    in_call = true;
    auto made = nic.manager->Connect(*queue_pair, address, options, Handler());
    in_call = false;
    if (made.ok()) connection = *std::move(made);
    return made.status();
  }
  absl::Status Accept(ConnectionRequest& request, const ConnectOptions& options = {}) {
    in_call = true;
    auto made = request.Accept(*queue_pair, options, Handler());
    in_call = false;
    if (made.ok()) connection = *std::move(made);
    return made.status();
  }

  FakeNic& nic;
  std::unique_ptr<FakeQueuePair> queue_pair;
  std::unique_ptr<Connection> connection;
  std::vector<Kind> events;
  absl::Status status;
  std::string text;
  uint32_t path_mtu = 0;
  std::function<void()> on_event;
  bool in_call = false;
};

absl::Span<const uint8_t> Bytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class ConnectionManagerTest : public ::testing::Test {
 protected:
  ConnectionManagerTest() {
    a_ = std::make_shared<FakeNic>(scheduler_, wire_, 1);
    b_ = std::make_shared<FakeNic>(scheduler_, wire_, 2);
  }

  // Listens on `nic`; requests wait in requests_ until a test answers them.
  std::unique_ptr<Listener> Listen(FakeNic& nic) {
    auto listener = nic.manager->Listen(nic.owner, At(nic), [this](std::unique_ptr<ConnectionRequest> request) {
      requests_.push_back(std::move(request));
    });
    EXPECT_TRUE(listener.ok()) << listener.status();
    return *std::move(listener);
  }

  static Address At(const FakeNic& nic, uint16_t port = kPort) {
    Address address = nic.address();
    address.port = port;
    return address;
  }

  void Run(Duration duration) { scheduler_.RunFor(duration); }

  // Connects `active` to `passive`, and lets both know.
  void Establish(End& active, End& passive) {
    auto listener = Listen(passive.nic);
    ASSERT_TRUE(active.Connect(listener->address()).ok());
    Run(Milliseconds(1));
    ASSERT_EQ(requests_.size(), 1u);
    ASSERT_TRUE(passive.Accept(*requests_.front()).ok());
    requests_.clear();
    Run(Milliseconds(1));
    ASSERT_THAT(active.events, ElementsAre(Kind::kEstablished));
    ASSERT_THAT(passive.events, ElementsAre(Kind::kEstablished));
    wire_.sent.clear();
  }

  // What a stranger at host 9 would send.
  static Mad StrangersReq(uint32_t id, uint32_t queue_pair, FakeNic& to, uint16_t port = kPort) {
    ConnectionOffer offer;
    offer.queue_pair = queue_pair;
    return {id, MakeReq(offer, FakeAddress(9, 40000), At(to, port), 99, id)};
  }

  RejectReason ReasonOfLast() { return std::get<RejMad>(wire_.sent.back().body).reason; }

  sim::Scheduler scheduler_;
  FakeWire wire_{scheduler_};
  std::shared_ptr<FakeNic> a_;
  std::shared_ptr<FakeNic> b_;
  std::deque<std::unique_ptr<ConnectionRequest>> requests_;
};

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

TEST_F(ConnectionManagerTest, NobodyListensNamesAddressAndRemedy) {
  End active(*a_);
  ASSERT_TRUE(active.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  EXPECT_THAT(active.events, ElementsAre(Kind::kRejected));
  EXPECT_TRUE(absl::IsUnavailable(active.status));
  EXPECT_THAT(active.status.ToString(), HasSubstr("nobody listens at 10.0.0.2:7000: start the service"));
}

TEST_F(ConnectionManagerTest, NobodyAnswersIsUnreachableAtTheDeadline) {
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

TEST_F(ConnectionManagerTest, TooLargeAnMtuIsAskedForAgainWithLess) {
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

TEST_F(ConnectionManagerTest, AcceptWithLessMtuMakesThePeerAskAgain) {
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
  b_->owner.Spend(Milliseconds(10));  // too busy to be told
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

TEST_F(ConnectionManagerTest, TheSixtyFifthUnansweredRequestIsRejected) {
  auto listener = Listen(*b_);
  std::vector<std::unique_ptr<End>> ends;
  for (size_t i = 0; i <= kMaxUnanswered; ++i) {
    ends.push_back(std::make_unique<End>(*a_));
    ASSERT_TRUE(ends.back()->Connect(At(*b_)).ok());
  }
  Run(Milliseconds(1));
  EXPECT_EQ(requests_.size(), kMaxUnanswered);
  EXPECT_THAT(ends.back()->events, ElementsAre(Kind::kRejected));
  EXPECT_TRUE(absl::IsResourceExhausted(ends.back()->status));
  requests_.clear();
  Run(Milliseconds(1));
  End late(*a_);
  ASSERT_TRUE(late.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(ConnectionManagerTest, HalfOpenConnectionsOfOnePeerAreBoundedAndTimeOut) {
  std::vector<std::unique_ptr<End>> ends;
  auto listener = *b_->manager->Listen(b_->owner, At(*b_), [&](std::unique_ptr<ConnectionRequest> request) {
    ends.push_back(std::make_unique<End>(*b_));
    EXPECT_TRUE(ends.back()->Accept(*request).ok());
  });
  for (uint32_t i = 1; i <= kMaxHalfOpenPerPeer + 10; ++i) {  // it never sends an RTU
    b_->ReceiveMad(FakeAddress(9), StrangersReq(i, 1000 + i, *b_));
    Run(Milliseconds(1));
  }
  EXPECT_EQ(ends.size(), kMaxHalfOpenPerPeer);
  EXPECT_EQ(ReasonOfLast(), RejectReason::kNoResources);
  End good(*a_);
  ASSERT_TRUE(good.Connect(At(*b_)).ok());  // another peer is not held up
  Run(Milliseconds(1));
  EXPECT_THAT(good.events, ElementsAre(Kind::kEstablished));
  Run(Seconds(6));
  for (size_t i = 0; i < kMaxHalfOpenPerPeer; ++i) EXPECT_THAT(ends[i]->events, ElementsAre(Kind::kUnreachable));
  Run(Seconds(20));
  EXPECT_EQ(b_->manager->connections(), 1u);
}

TEST_F(ConnectionManagerTest, ARequestThatNobodyAnswersTimesOut) {
  auto listener = Listen(*b_);
  b_->ReceiveMad(FakeAddress(9), StrangersReq(1, 1000, *b_));
  Run(Seconds(31));
  EXPECT_EQ(ReasonOfLast(), RejectReason::kTimeout);
  End end(*b_);
  EXPECT_TRUE(absl::IsUnavailable(end.Accept(*requests_[0])));
}

TEST_F(ConnectionManagerTest, ARequestThatWasTakenBackIsNotShownOrCannotBeAccepted) {
  auto listener = Listen(*b_);
  End first(*a_), second(*a_), end(*b_);
  ASSERT_TRUE(first.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  first.connection.reset();
  Run(Milliseconds(1));
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(end.Accept(*requests_[0])));
  requests_.clear();

  b_->owner.Spend(Seconds(1));  // too busy to be told
  ASSERT_TRUE(second.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  second.connection.reset();
  Run(Seconds(2));
  EXPECT_EQ(requests_.size(), 0u);
}

TEST_F(ConnectionManagerTest, ADroppedListenerTurnsAwayWhoIsNotYetKnown) {
  auto listener = Listen(*b_);
  End known(*a_), unknown(*a_), later(*a_), end(*b_);
  ASSERT_TRUE(known.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  b_->owner.Spend(Milliseconds(5));
  ASSERT_TRUE(unknown.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  listener.reset();
  ASSERT_TRUE(later.Connect(At(*b_)).ok());
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_TRUE(end.Accept(*requests_[0]).ok());
  Run(Milliseconds(10));
  EXPECT_THAT(known.events, ElementsAre(Kind::kEstablished));
  EXPECT_THAT(unknown.events, ElementsAre(Kind::kRejected));
  EXPECT_THAT(later.events, ElementsAre(Kind::kRejected));
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(ConnectionManagerTest, APortIsListenedAtOnce) {
  auto listener = Listen(*b_);
  EXPECT_TRUE(absl::IsAlreadyExists(b_->manager->Listen(b_->owner, At(*b_), [](auto) {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(b_->manager->Listen(b_->owner, At(*a_), [](auto) {}).status()));
  listener.reset();
  EXPECT_TRUE(b_->manager->Listen(b_->owner, At(*b_), [](auto) {}).ok());
  auto one = b_->manager->Listen(b_->owner, FakeAddress(2, 0), [](auto) {});
  auto two = b_->manager->Listen(b_->owner, Address(), [](auto) {});
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE((*one)->address().port, 0);
  EXPECT_NE((*one)->address().port, (*two)->address().port);
  EXPECT_EQ((*two)->address().ip, b_->address().ip);
}

TEST_F(ConnectionManagerTest, WrongArgumentsAreRefusedAtOnce) {
  End end(*a_);
  ConnectOptions options;
  const std::vector<uint8_t> much(57);
  options.private_data = much;
  EXPECT_TRUE(absl::IsInvalidArgument(end.Connect(At(*b_), options)));
  options = {};
  options.reliability.rnr_retry_count = 7;
  EXPECT_TRUE(absl::IsInvalidArgument(end.Connect(At(*b_), options)));
  options = {};
  options.max_path_mtu = 1500;
  EXPECT_TRUE(absl::IsInvalidArgument(end.Connect(At(*b_), options)));
  options = {};
  options.deadline = Duration();
  EXPECT_TRUE(absl::IsInvalidArgument(end.Connect(At(*b_), options)));
  EXPECT_TRUE(absl::IsInvalidArgument(end.Connect(At(*b_, 0))));
  EXPECT_TRUE(absl::IsInvalidArgument(end.Connect(Address())));
  ASSERT_TRUE(end.Connect(At(*b_)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(end.Connect(At(*b_))));
  EXPECT_EQ(wire_.Names(), "REQ");
}

TEST_F(ConnectionManagerTest, ARestartedPeerEndsTheOldConnection) {
  End active(*a_), passive(*b_);
  auto listener = Listen(*b_);
  b_->ReceiveMad(FakeAddress(9), StrangersReq(1, 1000, *b_));
  Run(Milliseconds(1));
  ASSERT_TRUE(passive.Accept(*requests_[0]).ok());
  const uint32_t our_id = std::get<RepMad>(wire_.sent.back().body).local_id;
  b_->ReceiveMad(FakeAddress(9), {1, RtuMad{1, our_id}});
  Run(Milliseconds(1));
  ASSERT_THAT(passive.events, ElementsAre(Kind::kEstablished));

  b_->ReceiveMad(FakeAddress(9), StrangersReq(2, 1000, *b_));  // the same queue pair, another connection
  Run(Milliseconds(1));
  EXPECT_EQ(ReasonOfLast(), RejectReason::kStaleConnection);
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
  b_->ReceiveMad(FakeAddress(9), StrangersReq(3, 1000, *b_));
  Run(Milliseconds(1));
  EXPECT_EQ(requests_.size(), 2u);
}

TEST_F(ConnectionManagerTest, OnlyThePeerMayEndAConnection) {
  End active(*a_), passive(*b_);
  Establish(active, passive);
  active.connection.reset();  // so as to learn the IDs
  const Mad dreq = wire_.sent.back();
  ASSERT_TRUE(std::holds_alternative<DreqMad>(dreq.body));
  wire_.sent.clear();
  b_->ReceiveMad(FakeAddress(9), dreq);
  EXPECT_EQ(wire_.Names(), "DREP");  // the stranger is told that there is no such connection
  EXPECT_EQ(passive.queue_pair->state(), QueuePairState::kReadyToSend);
  Mad wrong = dreq;
  std::get<DreqMad>(wrong.body).remote_queue_pair ^= 1;
  wire_.sent.clear();
  b_->ReceiveMad(a_->address(), wrong);
  EXPECT_EQ(wire_.Names(), "");
  EXPECT_EQ(passive.queue_pair->state(), QueuePairState::kReadyToSend);
}

TEST_F(ConnectionManagerTest, AMessageAboutNoConnectionIsAnsweredWhereThatEndsSomething) {
  const std::pair<Mad, std::string> cases[] = {
      {{1, DreqMad{5, 6, 7}}, "DREP"}, {{1, RepMad()}, "REJ"}, {{1, RtuMad{5, 6}}, "REJ"},
      {{1, DrepMad{5, 6}}, ""},        {{1, MraMad()}, ""},    {{1, RejMad()}, ""},
  };
  for (const auto& [mad, answer] : cases) {
    wire_.sent.clear();
    a_->ReceiveMad(FakeAddress(9), mad);
    EXPECT_EQ(wire_.Names(), answer) << NameOf(mad);
  }
}

TEST_F(ConnectionManagerTest, FaultyRequestsAreRejectedWithTheirReason) {
  auto listener = Listen(*b_);
  const auto reason_for = [&](const std::function<void(ReqMad*)>& spoil) {
    Mad mad = StrangersReq(1, 1000, *b_);
    spoil(&std::get<ReqMad>(mad.body));
    wire_.sent.clear();
    b_->ReceiveMad(FakeAddress(9), mad);
    EXPECT_EQ(wire_.Names(), "REJ");
    EXPECT_EQ(wire_.sent.back().transaction, mad.transaction);
    EXPECT_EQ(std::get<RejMad>(wire_.sent.back().body).remote_id, std::get<ReqMad>(mad.body).local_id);
    return ReasonOfLast();
  };
  EXPECT_EQ(reason_for([](ReqMad* req) { req->transport_type = 1; }), RejectReason::kInvalidTransportType);
  EXPECT_EQ(reason_for([](ReqMad* req) { req->service_id = 7; }), RejectReason::kInvalidServiceId);
  EXPECT_EQ(reason_for([](ReqMad* req) { req->service_id += 1; }), RejectReason::kInvalidServiceId);
  EXPECT_EQ(reason_for([](ReqMad* req) { req->pkey = 0x8001; }), RejectReason::kInvalidGid);
  EXPECT_EQ(reason_for([](ReqMad* req) { req->remote_gid[15] ^= 1; }), RejectReason::kInvalidGid);
  EXPECT_EQ(reason_for([](ReqMad* req) { req->local_gid[15] ^= 1; }), RejectReason::kConsumer);
  EXPECT_EQ(reason_for([](ReqMad* req) { req->private_data[1] = 0x50; }), RejectReason::kConsumer);
  EXPECT_EQ(reason_for([](ReqMad* req) { req->queue_pair = 1; }), RejectReason::kUnsupportedRequest);
  EXPECT_EQ(reason_for([](ReqMad* req) { req->mtu_code = 6; }), RejectReason::kInvalidMtu);
  EXPECT_EQ(reason_for([](ReqMad* req) { req->local_id = 0; }), RejectReason::kInvalidCommunicationId);
  Run(Seconds(1));
  EXPECT_TRUE(requests_.empty());
  EXPECT_EQ(b_->manager->connections(), 0u);
}

TEST_F(ConnectionManagerTest, RandomDatagramsDoNoHarm) {
  auto listener = *b_->manager->Listen(b_->owner, At(*b_), [](std::unique_ptr<ConnectionRequest>) {});
  End active(*a_), passive(*b_);
  base::Random random(7);
  for (int round = 0; round < 20000; ++round) {
    Mad mad = StrangersReq(static_cast<uint32_t>(random.Below(20)), static_cast<uint32_t>(random.Below(20)), *b_);
    MadBytes bytes = EncodeMad(mad);
    bytes[17] = static_cast<uint8_t>(0x10 + random.Below(7));
    const uint64_t flips = random.Below(8);
    for (uint64_t i = 0; i < flips; ++i)
      bytes[random.Below(random.Chance(0.5) ? 100 : 256)] = static_cast<uint8_t>(random.Next());
    b_->ReceiveBytes(FakeAddress(static_cast<uint8_t>(9 + random.Below(3))),
                     absl::MakeConstSpan(bytes).first(random.Chance(0.95) ? 256 : random.Below(256)));
    Run(Microseconds(random.Below(2000)));
  }
  Run(Seconds(60));
  EXPECT_EQ(b_->manager->connections(), 0u);
}

TEST_F(ConnectionManagerTest, ANicGoesWithItsLastHandle) {
  End active(*a_), passive(*b_);
  Establish(active, passive);
  std::weak_ptr<FakeNic> watch = a_;
  auto connection = std::move(active.connection);
  active.queue_pair.reset();
  a_.reset();
  EXPECT_FALSE(watch.expired());
  connection.reset();
  EXPECT_TRUE(watch.expired());
  Run(Seconds(60));
}

}  // namespace
}  // namespace tokamak::verbs::soft
