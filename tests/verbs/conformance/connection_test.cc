// Making a connection: request and answer, private data, every way in which it does not come about.
#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "tests/verbs/conformance/service.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr auto kEstablished = ConnectionEvent::Kind::kEstablished;
constexpr auto kRejected = ConnectionEvent::Kind::kRejected;
constexpr auto kUnreachable = ConnectionEvent::Kind::kUnreachable;

// CM carries private data in fields of a fixed size: what is shorter may arrive with zeros behind
// it.
testing::AssertionResult IsPrivateData(absl::Span<const uint8_t> got, absl::Span<const uint8_t> sent) {
  if (got.size() < sent.size()) return testing::AssertionFailure() << "only " << got.size() << " bytes came";
  std::vector<uint8_t> padded(sent.begin(), sent.end());
  padded.resize(got.size());
  return Same(got, padded);
}

class ConnectionTest : public ConformanceTest {
 protected:
  bool AwaitEvent(End& end) {
    return Drive([&] { return !end.events.empty(); });
  }

  // The peer gave up before `passive` accepted: the connection does not come up, or for that side
  // alone, and then ends.
  void ExpectTooLate(End& passive) {
    EXPECT_TRUE(AwaitEvent(passive));
    if (!limits().three_way_connect && passive.Saw(kEstablished)) {
      EXPECT_TRUE(Drive([&] { return passive.Saw(ConnectionEvent::Kind::kDisconnected); })) << backend().Counters();
    } else {
      EXPECT_FALSE(passive.Saw(kEstablished));
    }
  }

  // Enough for a request and its answer to get through, and not longer than a test should wait for
  // nobody.
  base::Duration ShortDeadline() { return GetParam().lossy ? base::Seconds(10) : backend().quiet() * 10; }
};
TOKAMAK_CONFORMANCE(ConnectionTest);

TEST_P(ConnectionTest, BothSidesAreTold) {
  auto pair = Connect();
  EXPECT_EQ(pair->active.statuses, std::vector<absl::Status>{absl::OkStatus()});
  EXPECT_EQ(pair->active.state(), QueuePairState::kReadyToSend);
  EXPECT_EQ(pair->passive.state(), QueuePairState::kReadyToSend);
  LookOn();
  EXPECT_EQ(pair->active.events.size(), 1u);
  EXPECT_EQ(pair->passive.events.size(), 1u);
}

TEST_P(ConnectionTest, BothSidesKnowTheirPeer) {
  End active(backend(), 0), passive(backend(), 1);
  Service service(backend(), 1);
  ASSERT_TRUE(active.Connect(service.address(), ConnectDefaults()).ok());
  EXPECT_EQ(active.connection->peer().ip, passive.device.address().ip);
  auto request = service.Await();
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->peer().ip, active.device.address().ip);
  ASSERT_TRUE(passive.Accept(*request, ConnectDefaults()).ok());
  EXPECT_EQ(passive.connection->peer().ip, active.device.address().ip);
}

TEST_P(ConnectionTest, PrivateDataTravelsBothWays) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{limits().max_private_data - 1}, size_t{limits().max_private_data}}) {
    SCOPED_TRACE(testing::Message() << size << " bytes");
    const std::vector<uint8_t> question = Pattern(1, size), answer = Pattern(2, size);
    End active(backend(), 0), passive(backend(), 1);
    Service service(backend(), 1);
    ConnectOptions ask = ConnectDefaults(), agree = ConnectDefaults();
    ask.private_data = question;
    agree.private_data = answer;
    ASSERT_TRUE(active.Connect(service.address(), ask).ok());
    auto request = service.Await();
    ASSERT_NE(request, nullptr);
    EXPECT_TRUE(IsPrivateData(request->private_data(), question));
    ASSERT_TRUE(passive.Accept(*request, agree).ok());
    ASSERT_TRUE(AwaitEvent(active));
    EXPECT_THAT(active.events, ElementsAre(kEstablished));
    EXPECT_TRUE(IsPrivateData(active.private_data, answer));
  }
}

TEST_P(ConnectionTest, TooMuchPrivateDataIsRefused) {
  const std::vector<uint8_t> bytes(limits().max_private_data + 1, 1);
  End active(backend(), 0);
  Service service(backend(), 1);
  ConnectOptions options = ConnectDefaults();
  options.private_data = bytes;
  EXPECT_TRUE(absl::IsInvalidArgument(active.Connect(service.address(), options)));
  LookOn();
  EXPECT_TRUE(active.events.empty());
  EXPECT_EQ(service.seen, 0u);
}

TEST_P(ConnectionTest, RetryCountsThatMeanForEverAreRefused) {
  End active(backend(), 0);
  Service service(backend(), 1);
  ConnectOptions options = ConnectDefaults();
  options.reliability.rnr_retry_count = kMaxRetryCount + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(active.Connect(service.address(), options)));
}

// Where the answer is lost for long, the peer may be asked anew: so both of these go on rejecting.
TEST_P(ConnectionTest, ARejectionCarriesPrivateData) {
  const std::vector<uint8_t> reason = Pattern(5, 40);
  End active(backend(), 0);
  Service service(backend(), 1);
  service.reject_with = reason;
  ASSERT_TRUE(active.Connect(service.address(), ConnectDefaults()).ok());
  ASSERT_TRUE(AwaitEvent(active));
  EXPECT_THAT(active.events, ElementsAre(kRejected));
  EXPECT_FALSE(active.statuses[0].ok());
  EXPECT_TRUE(IsPrivateData(active.private_data, reason));
  EXPECT_NE(active.state(), QueuePairState::kReadyToSend);
}

TEST_P(ConnectionTest, DroppingARequestRejectsIt) {
  End active(backend(), 0);
  Service service(backend(), 1);
  ASSERT_TRUE(active.Connect(service.address(), ConnectDefaults()).ok());
  EXPECT_TRUE(Drive([&] {
    service.requests.clear();
    return !active.events.empty();
  }));
  EXPECT_THAT(active.events, ElementsAre(kRejected));
  EXPECT_GE(service.seen, 1u);
}

// At once: well before the request would be repeated. Where packets are lost it may have to be.
TEST_P(ConnectionTest, WhereNobodyListensTheRequestIsRejected) {
  ExpectTakes({}, GetParam().lossy ? backend().patience() : backend().slack(), [&](base::Duration* took) {
    End active(backend(), 0);
    Service elsewhere(backend(), 1);
    Address service = elsewhere.address();
    service.port = static_cast<uint16_t>(service.port ^ 1);
    const base::Time start = active.loop.Now();
    ASSERT_TRUE(active.Connect(service, ConnectDefaults()).ok());
    ASSERT_TRUE(AwaitEvent(active));
    *took = active.loop.Now() - start;
    EXPECT_THAT(active.events, ElementsAre(kRejected));
    EXPECT_FALSE(active.statuses[0].ok());
    EXPECT_EQ(elsewhere.seen, 0u);
  });
}

TEST_P(ConnectionTest, WhereNoDeviceIsThePeerIsUnreachableByTheDeadline) {
  End active(backend(), 0);
  Address service = backend().nowhere();
  service.port = 7000;
  ConnectOptions options = ConnectDefaults();
  options.deadline = ShortDeadline();
  const base::Time start = active.loop.Now();
  ASSERT_TRUE(active.Connect(service, options).ok());
  ASSERT_TRUE(AwaitEvent(active));
  EXPECT_THAT(active.events, ElementsAre(kUnreachable));
  EXPECT_FALSE(active.statuses[0].ok());
  EXPECT_LE((active.loop.Now() - start).microseconds(), (options.deadline + backend().slack()).microseconds());
}

TEST_P(ConnectionTest, APeerThatDoesNotAnswerIsUnreachableByTheDeadline) {
  End active(backend(), 0), passive(backend(), 1);
  Service service(backend(), 1);
  ConnectOptions options = ConnectDefaults();
  options.deadline = ShortDeadline();
  const base::Time start = active.loop.Now();
  ASSERT_TRUE(active.Connect(service.address(), options).ok());
  auto request = service.Await();
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(AwaitEvent(active));
  EXPECT_THAT(active.events, ElementsAre(kUnreachable));
  const base::Duration took = active.loop.Now() - start;
  EXPECT_GE(took.microseconds(), (options.deadline * 9 / 10).microseconds());
  EXPECT_LE(took.microseconds(), (options.deadline + backend().slack()).microseconds());

  // Too late now, whatever Accept says.
  ConnectOptions late = ConnectDefaults();
  late.deadline = ShortDeadline();
  if (passive.Accept(*request, late).ok()) ExpectTooLate(passive);
}

TEST_P(ConnectionTest, ARequestIsPresentedOnceHoweverLateItsAnswer) {
  End active(backend(), 0), passive(backend(), 1);
  Service service(backend(), 1);
  ASSERT_TRUE(active.Connect(service.address(), ConnectDefaults()).ok());
  auto request = service.Await();
  ASSERT_NE(request, nullptr);
  for (int i = 0; i < 5; ++i) LookOn();
  EXPECT_EQ(service.seen, 1u);
  EXPECT_TRUE(active.events.empty());
  ASSERT_TRUE(passive.Accept(*request, ConnectDefaults()).ok());
  EXPECT_TRUE(Drive([&] { return active.Saw(kEstablished) && passive.Saw(kEstablished); }));
  ExpectWorks(active, passive);
  EXPECT_EQ(service.seen, 1u);
}

TEST_P(ConnectionTest, AcceptWalksTheQueuePairToReadyToReceiveBeforeThePeerSaysMore) {
  End active(backend(), 0), passive(backend(), 1);
  Service service(backend(), 1);
  ASSERT_TRUE(active.Connect(service.address(), ConnectDefaults()).ok());
  auto request = service.Await();
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(passive.Accept(*request, ConnectDefaults()).ok());
  // A device that answers on a thread of its own is there a little later.
  EXPECT_TRUE(Drive([&] {
    return passive.state() == QueuePairState::kReadyToReceive || passive.state() == QueuePairState::kReadyToSend;
  }));
}

// CM lets only the active side name the path MTU, so a device may ask again for less or reject.
TEST_P(ConnectionTest, ThePassiveSideGetsNoLargerPacketsThanItAllows) {
  End active(backend(), 0), passive(backend(), 1);
  Service service(backend(), 1);
  service.accept_with = [&]() -> End& { return passive; };
  service.accept_options = ConnectDefaults();
  service.accept_options.max_path_mtu = 512;
  ASSERT_TRUE(active.Connect(service.address(), ConnectDefaults()).ok());
  EXPECT_TRUE(Drive([&] { return active.Saw(kRejected) || (active.Saw(kEstablished) && passive.Saw(kEstablished)); }));
  if (active.Saw(kRejected)) return;
  EXPECT_EQ(active.path_mtu, 512u);
  EXPECT_EQ(passive.path_mtu, 512u);
  ExpectWorks(active, passive);
}

// iWARP's networks have no numbers.
TEST_P(ConnectionTest, BothSidesHearThePeersNumberFromTheNetworkOrNeither) {
  auto pair = Connect();
  if (pair->active.peer_queue_pair == 0) {
    EXPECT_EQ(pair->passive.peer_queue_pair, 0u);
    EXPECT_FALSE(limits().immediate) << "only iWARP has none";
    return;
  }
  EXPECT_EQ(pair->active.peer_queue_pair, pair->passive.queue_pair->number());
  EXPECT_EQ(pair->passive.peer_queue_pair, pair->active.queue_pair->number());
}

TEST_P(ConnectionTest, AQueuePairConnectsOnce) {
  auto pair = Connect();
  Service service(backend(), 1);
  auto second = pair->active.device.connection_manager().Connect(*pair->active.queue_pair, service.address(),
                                                                 ConnectDefaults(), [](const ConnectionEvent&) {});
  EXPECT_FALSE(second.ok());
  EXPECT_EQ(pair->active.state(), QueuePairState::kReadyToSend);
  ExpectWorks(pair->active, pair->passive);
}

TEST_P(ConnectionTest, AListenerWithoutAPortGetsOneOfItsOwn) {
  Service a(backend(), 1), b(backend(), 1);
  EXPECT_NE(a.address().port, 0);
  EXPECT_NE(b.address().port, 0);
  EXPECT_NE(a.address().port, b.address().port);
}

TEST_P(ConnectionTest, APortHasOneListener) {
  Service service(backend(), 1);
  auto second = backend().device(1).connection_manager().Listen(backend().loop(1), service.address(),
                                                                [](std::unique_ptr<ConnectionRequest>) {});
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
}

TEST_P(ConnectionTest, ADroppedListenersPortIsFreeAgain) {
  Service service(backend(), 1);
  const Address address = service.address();
  service.listener.reset();
  auto second = backend().device(1).connection_manager().Listen(backend().loop(1), address,
                                                                [](std::unique_ptr<ConnectionRequest>) {});
  EXPECT_TRUE(second.ok()) << second.status();
}

TEST_P(ConnectionTest, ADroppedListenerHearsNothing) {
  End active(backend(), 0);
  Service service(backend(), 1);
  const Address address = service.address();
  service.listener.reset();
  ASSERT_TRUE(active.Connect(address, ConnectDefaults()).ok());
  ASSERT_TRUE(AwaitEvent(active));
  EXPECT_THAT(active.events, ElementsAre(kRejected));
  EXPECT_EQ(service.seen, 0u);
}

TEST_P(ConnectionTest, ConnectionsOutliveTheirListener) {
  End active(backend(), 0), passive(backend(), 1);
  Service service(backend(), 1);
  service.accept_with = [&]() -> End& { return passive; };
  service.accept_options = ConnectDefaults();
  ASSERT_TRUE(active.Connect(service.address(), ConnectDefaults()).ok());
  ASSERT_TRUE(Drive([&] { return active.Saw(kEstablished) && passive.Saw(kEstablished); }));
  service.listener.reset();
  LookOn();
  ExpectWorks(active, passive);
}

TEST_P(ConnectionTest, AnAttemptThatIsDroppedIsHeardOfNoMore) {
  End active(backend(), 0), passive(backend(), 1);
  Service service(backend(), 1);
  ASSERT_TRUE(active.Connect(service.address(), ConnectDefaults()).ok());
  auto request = service.Await();
  ASSERT_NE(request, nullptr);
  active.connection.reset();
  LookOn();
  EXPECT_TRUE(active.events.empty());
  if (passive.Accept(*request, ConnectDefaults()).ok()) ExpectTooLate(passive);
  EXPECT_TRUE(active.events.empty());
}

TEST_P(ConnectionTest, AQueuePairThatIsMadeLaterTakesReceivesAndConnectsAsAnyOther) {
  EndOptions later;
  later.may_be_made_later = true;
  End active(backend(), 0, later), passive(backend(), 1, later), unused(backend(), 0, later);
  Memory source(active.home_domain(), 24, 41), sink(passive.home_domain(), 24, 42);
  passive.MustPostReceives({{7, {sink.whole()}}});
  Service service(backend(), 1);
  service.accept_with = [&]() -> End& { return passive; };
  service.accept_options = ConnectDefaults();
  ASSERT_TRUE(active.Connect(service.address(), ConnectDefaults()).ok());
  ASSERT_TRUE(Drive([&] { return active.Saw(kEstablished) && passive.Saw(kEstablished); }));
  active.MustPost({Send(8, {source.whole()})});
  EXPECT_THAT(passive.AwaitReceives(1), ElementsAre(Received(7, 24)));
  EXPECT_THAT(active.AwaitSends(1), ElementsAre(Done(8, CompletionOpcode::kSend)));
  EXPECT_TRUE(sink.Holds(41));
  EXPECT_NE(active.queue_pair->number(), 0u);
}

TEST_P(ConnectionTest, AnAttemptMayBeDroppedAtOnce) {
  End active(backend(), 0);
  Service service(backend(), 1);
  ASSERT_TRUE(active.Connect(service.address(), ConnectDefaults()).ok());
  active.connection.reset();
  LookOn();
  EXPECT_TRUE(active.events.empty());
}

TEST_P(ConnectionTest, BothSidesMayConnectToEachOtherAtOnce) {
  End a(backend(), 0), b(backend(), 1), a_passive(backend(), 0), b_passive(backend(), 1);
  Service at_a(backend(), 0), at_b(backend(), 1);
  at_a.accept_with = [&]() -> End& { return a_passive; };
  at_b.accept_with = [&]() -> End& { return b_passive; };
  at_a.accept_options = at_b.accept_options = ConnectDefaults();
  ASSERT_TRUE(a.Connect(at_b.address(), ConnectDefaults()).ok());
  ASSERT_TRUE(b.Connect(at_a.address(), ConnectDefaults()).ok());
  EXPECT_TRUE(Drive([&] {
    return a.Saw(kEstablished) && b.Saw(kEstablished) && a_passive.Saw(kEstablished) && b_passive.Saw(kEstablished);
  })) << backend().Counters();
  ExpectWorks(a, b_passive);
  ExpectWorks(b, a_passive);
}

TEST_P(ConnectionTest, FiftyConnectionsAreMadeAtOnce) {
  constexpr size_t kCount = 50;
  End active_home(backend(), 0), passive_home(backend(), 1);
  EndOptions options;
  options.max_receive_requests = options.max_send_requests = 4;
  std::vector<std::unique_ptr<End>> actives, passives;
  Service service(backend(), 1);
  service.accept_options = ConnectDefaults();
  service.accept_with = [&]() -> End& {
    passives.push_back(std::make_unique<End>(backend(), 1, options, &passive_home));
    return *passives.back();
  };
  for (size_t i = 0; i < kCount; ++i) {
    actives.push_back(std::make_unique<End>(backend(), 0, options, &active_home));
    ASSERT_TRUE(actives.back()->Connect(service.address(), ConnectDefaults()).ok());
  }
  const auto up = [](const std::unique_ptr<End>& end) { return end->Saw(kEstablished); };
  EXPECT_TRUE(Drive([&] {
    return passives.size() == kCount && std::all_of(actives.begin(), actives.end(), up) &&
           std::all_of(passives.begin(), passives.end(), up);
  })) << passives.size()
      << " accepted. " << backend().Counters();
  ASSERT_EQ(passives.size(), kCount);

  // Each leads to a queue pair of its own.
  for (auto& passive : passives) passive->MustPostReceives({{1, {}}});
  for (auto& active : actives) active->MustPost({Send(1, {})});
  std::set<uint32_t> numbers;
  for (const Completion& completion : passive_home.AwaitReceives(kCount)) numbers.insert(completion.queue_pair_number);
  EXPECT_EQ(numbers.size(), kCount);
}

// Some devices reject what is beyond that, others have more room.
TEST_P(ConnectionTest, SixtyFourRequestsMayWaitForAnAnswer) {
  constexpr size_t kCount = 70, kLeast = 64;
  End home(backend(), 0);
  EndOptions options;
  options.max_receive_requests = options.max_send_requests = 4;
  std::vector<std::unique_ptr<End>> actives;
  Service service(backend(), 1);
  for (size_t i = 0; i < kCount; ++i) {
    actives.push_back(std::make_unique<End>(backend(), 0, options, &home));
    ASSERT_TRUE(actives.back()->Connect(service.address(), ConnectDefaults()).ok());
  }
  const auto rejected = [](const std::unique_ptr<End>& end) { return end->Saw(kRejected); };
  EXPECT_TRUE(Drive([&] {
    const auto refused = static_cast<size_t>(std::count_if(actives.begin(), actives.end(), rejected));
    return service.seen >= kLeast && service.seen + refused == kCount;
  })) << service.seen
      << " seen. " << backend().Counters();
  LookOn();
  const size_t seen = service.seen;
  EXPECT_EQ(service.requests.size(), seen);

  // A place is free again when one has been answered.
  service.requests.pop_back();
  End late(backend(), 0);
  ASSERT_TRUE(late.Connect(service.address(), ConnectDefaults()).ok());
  EXPECT_TRUE(Drive([&] { return service.seen == seen + 1; }));
}

}  // namespace
}  // namespace tokamak::verbs::conformance
