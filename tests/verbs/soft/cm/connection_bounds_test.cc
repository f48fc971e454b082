// Bounds and refusals of a connection manager: half-open connections, faulty and foreign messages,
// wrong arguments.
#include "lib/base/random.h"
#include "tests/verbs/soft/cm/connection_manager_fixture.h"

namespace tokamak::verbs::soft {
namespace {

using ConnectionBoundsTest = ConnectionManagerTest;

TEST_F(ConnectionBoundsTest, APeerWithACookieThatFindsNoRoomAsksAgain) {
  auto listener = Listen(*b_);
  constexpr size_t kRoom = kAnyHalfOpen.of_one + kCookieHalfOpen.of_one;
  std::vector<std::unique_ptr<End>> ends;
  for (size_t i = 0; i <= kRoom; ++i) {
    ends.push_back(std::make_unique<End>(*a_));
    ASSERT_TRUE(ends.back()->Connect(At(*b_)).ok());
  }
  Run(Milliseconds(1));
  EXPECT_EQ(requests_.size(), kRoom);
  EXPECT_THAT(ends.back()->events, IsEmpty());
  requests_.resize(kRoom - 1);  // one is rejected
  Run(Milliseconds(300));
  EXPECT_EQ(requests_.size(), kRoom);
  for (auto& request : requests_) {
    End passive(*b_);
    EXPECT_TRUE(passive.Accept(*request).ok());
    Run(Milliseconds(1));
  }
  EXPECT_THAT(ends.back()->events, ElementsAre(Kind::kEstablished));
}

TEST_F(ConnectionBoundsTest, HalfOpenConnectionsOfOnePeerAreBoundedAndTimeOut) {
  std::vector<std::unique_ptr<End>> ends;
  auto listener = *b_->manager->Listen(b_->owner, At(*b_), [&](std::unique_ptr<ConnectionRequest> request) {
    ends.push_back(std::make_unique<End>(*b_));
    EXPECT_TRUE(ends.back()->Accept(*request).ok());
  });
  for (uint32_t i = 1; i <= kAnyHalfOpen.of_one + 10; ++i) {  // it never sends an RTU
    b_->ReceiveMad(FakeAddress(9), StrangersReq(i, 1000 + i, *b_));
    Run(Milliseconds(1));
  }
  EXPECT_EQ(ends.size(), kAnyHalfOpen.of_one);
  EXPECT_EQ(b_->manager->half_open(), kAnyHalfOpen.of_one);
  EXPECT_TRUE(IsQuestion(std::get<DreqMad>(wire_.sent.back().body)));
  End good(*a_);
  ASSERT_TRUE(good.Connect(At(*b_)).ok());  // another peer is not held up
  Run(Milliseconds(1));
  EXPECT_THAT(good.events, ElementsAre(Kind::kEstablished));
  Run(Seconds(6));
  for (size_t i = 0; i < kAnyHalfOpen.of_one; ++i) EXPECT_THAT(ends[i]->events, ElementsAre(Kind::kUnreachable));
  Run(Seconds(20));
  EXPECT_EQ(b_->manager->connections(), 1u);
}

TEST_F(ConnectionBoundsTest, HalfOpenConnectionsOfAllPeersAreBounded) {
  std::vector<std::unique_ptr<End>> ends;
  auto listener = *b_->manager->Listen(b_->owner, At(*b_), [&](std::unique_ptr<ConnectionRequest> request) {
    ends.push_back(std::make_unique<End>(*b_));
    EXPECT_TRUE(ends.back()->Accept(*request).ok());
  });
  size_t refused = 0;
  constexpr size_t kPeers = kAnyHalfOpen.of_all / kAnyHalfOpen.of_one + 2;
  for (uint32_t i = 1; i <= kPeers * kAnyHalfOpen.of_one; ++i) {  // as many as each may have
    const auto host = static_cast<uint8_t>(9 + i % kPeers);
    refused +=
        b_->ReceiveMad(FakeAddress(host), StrangersReq(i, 1000 + i, *b_, kPort, host)) == DatagramResult::kRefused;
    EXPECT_LE(b_->manager->half_open(), kAnyHalfOpen.of_all);
    Run(Microseconds(1));
  }
  EXPECT_EQ(b_->manager->half_open(), kAnyHalfOpen.of_all);
  EXPECT_EQ(refused, 2 * kAnyHalfOpen.of_one);
  EXPECT_EQ(ends.size(), kAnyHalfOpen.of_all);
  Run(Seconds(30));
  EXPECT_EQ(b_->manager->half_open(), 0u);
  EXPECT_EQ(b_->manager->connections(), 0u);
}

TEST_F(ConnectionBoundsTest, ABoundedNumberOfEndedConnectionsIsRemembered) {
  auto listener = *b_->manager->Listen(b_->owner, At(*b_), [](std::unique_ptr<ConnectionRequest> request) {
    request->Reject({});  // answered to the end of its time, should the peer ask again
  });
  size_t most = 0;
  for (uint32_t i = 1; i <= kMaxEnding + 500; ++i) {
    b_->ReceiveMad(FakeAddress(9), StrangersReq(i, 1000 + i, *b_));
    Run(Microseconds(1));
    most = std::max(most, b_->manager->connections());
  }
  EXPECT_GE(most, kMaxEnding);
  EXPECT_LE(most, kMaxEnding + 1);
  Run(Seconds(30));
  EXPECT_EQ(b_->manager->connections(), 0u);
}

TEST_F(ConnectionBoundsTest, ARequestThatNobodyAnswersTimesOut) {
  auto listener = Listen(*b_);
  b_->ReceiveMad(FakeAddress(9), StrangersReq(1, 1000, *b_));
  Run(Seconds(31));
  EXPECT_EQ(ReasonOfLast(), RejectReason::kTimeout);
  End end(*b_);
  EXPECT_TRUE(absl::IsCancelled(end.Accept(*requests_[0])));
}

TEST_F(ConnectionBoundsTest, AWithdrawnRequestIsNotShownOrCannotBeAccepted) {
  auto listener = Listen(*b_);
  End first(*a_), second(*a_), end(*b_);
  ASSERT_TRUE(first.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  first.connection.reset();
  Run(Milliseconds(1));
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_TRUE(absl::IsCancelled(end.Accept(*requests_[0])));
  requests_.clear();

  b_->owner.Spend(Seconds(1));  // too busy to hear of it
  ASSERT_TRUE(second.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  second.connection.reset();
  Run(Seconds(2));
  EXPECT_EQ(requests_.size(), 0u);
}

TEST_F(ConnectionBoundsTest, ADroppedListenerTurnsAwayUnknownPeers) {
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

TEST_F(ConnectionBoundsTest, APortHasOneListenerAtATime) {
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

TEST_F(ConnectionBoundsTest, WrongArgumentsAreRefusedAtOnce) {
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

TEST_F(ConnectionBoundsTest, TheOldConnectionEndsWhenThePeerSaysThatItForgotIt) {
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
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished)) << "anybody may have sent that";
  const Mad question = wire_.sent[wire_.sent.size() - 2];
  EXPECT_NE(std::get<DreqMad>(question.body).remote_queue_pair, 1000u) << "who knows the connection ignores it";
  b_->ReceiveMad(FakeAddress(9), {question.transaction + 1, DrepMad{1, our_id}});
  b_->ReceiveMad(FakeAddress(8), {question.transaction, DrepMad{1, our_id}});
  Run(Milliseconds(1));
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished)) << "no answer to the question";
  b_->ReceiveMad(FakeAddress(9), {question.transaction, DrepMad{1, our_id}});
  Run(Milliseconds(1));
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
  b_->ReceiveMad(FakeAddress(9), StrangersReq(3, 1000, *b_));
  Run(Milliseconds(1));
  EXPECT_EQ(requests_.size(), 2u);
}

TEST_F(ConnectionBoundsTest, OnlyThePeerMayEndAConnection) {
  End active(*a_), passive(*b_);
  Establish(active, passive);
  active.connection.reset();  // so as to learn the IDs
  const Mad dreq = wire_.sent.back();
  ASSERT_TRUE(std::holds_alternative<DreqMad>(dreq.body));
  wire_.sent.clear();
  b_->ReceiveMad(FakeAddress(9), dreq);
  EXPECT_EQ(wire_.Names(), "DREP");  // the stranger learns that there is no such connection
  EXPECT_EQ(passive.queue_pair->state(), QueuePairState::kReadyToSend);
  Mad wrong = dreq;
  std::get<DreqMad>(wrong.body).remote_queue_pair ^= 1;
  wire_.sent.clear();
  b_->ReceiveMad(a_->address(), wrong);
  EXPECT_EQ(wire_.Names(), "");
  EXPECT_EQ(passive.queue_pair->state(), QueuePairState::kReadyToSend);
}

TEST_F(ConnectionBoundsTest, AMessageAboutNoConnectionIsAnsweredIfThatEndsSomething) {
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

TEST_F(ConnectionBoundsTest, FaultyRequestsAreRejectedWithTheirReason) {
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

TEST_F(ConnectionBoundsTest, RandomDatagramsDoNoHarm) {
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

TEST_F(ConnectionBoundsTest, ANicGoesWithItsLastHandle) {
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
