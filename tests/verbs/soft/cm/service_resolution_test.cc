#include "lib/verbs/soft/cm/service_resolution.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/verbs/datagrams.h"
#include "tests/verbs/soft/cm/fake_nic.h"

namespace tokamak::verbs::soft {
namespace {

using base::Duration;
using base::Milliseconds;
using base::Seconds;

constexpr uint16_t kPort = 7174;

ServiceData Text(absl::string_view text) {
  ServiceData data{};
  std::copy(text.begin(), text.end(), data.begin());
  return data;
}

SidrRepMad SomeAnswer() {
  SidrRepMad answer;
  answer.queue_pair = 0x1234;
  answer.qkey = kServiceQkey;
  answer.private_data[0] = 'a';
  return answer;
}

class Asker final : public ServiceAsker {
 public:
  void Tell(const SidrRepMad* answer) override {
    ++told;
    rep = answer == nullptr ? std::nullopt : std::make_optional(*answer);
  }

  int told = 0;
  std::optional<SidrRepMad> rep;
};

class Server final : public ServiceListener {
 public:
  void Wake() override { ++woken; }

  int woken = 0;
};

class ServiceResolutionTest : public ::testing::Test {
 protected:
  ServiceResolutionTest() {
    a_ = std::make_shared<FakeNic>(scheduler_, wire_, 1);
    b_ = std::make_shared<FakeNic>(scheduler_, wire_, 2);
  }

  static Address At(const FakeNic& nic, uint16_t port = kPort) {
    Address address = nic.address();
    address.port = port;
    return address;
  }

  // `call` with the NIC's services, under its mutex.
  template <typename Call>
  static auto With(FakeNic& nic, const Call& call) {
    NicLock lock(nic.mutex());
    return call(nic.manager->services());
  }

  static absl::StatusOr<uint16_t> Listen(FakeNic& nic, Server& server, uint16_t port = kPort) {
    return With(nic, [&](ServiceResolution& services) { return services.Listen(server, port); });
  }
  static absl::Status Ask(FakeNic& nic, Asker& asker, const Address& address, uint16_t port = 0,
                          const ServiceData& data = {}) {
    return With(nic, [&](ServiceResolution& services) { return services.Ask(asker, address, port, data); });
  }
  static std::optional<ServiceRequest> Take(FakeNic& nic, Server& server) {
    return With(nic, [&](ServiceResolution& services) { return services.Take(server); });
  }
  static absl::Status Answer(FakeNic& nic, uint64_t request, const SidrRepMad& answer) {
    return With(nic, [&](ServiceResolution& services) { return services.Answer(request, answer); });
  }
  template <typename Known>
  static void Forget(FakeNic& nic, Known& known) {
    With(nic, [&](ServiceResolution& services) {
      services.Forget(known);
      return 0;
    });
  }
  static size_t Waiting(FakeNic& nic) {
    return With(nic, [](ServiceResolution& services) { return services.requests_waiting(); });
  }
  static size_t AnswersKept(FakeNic& nic) {
    return With(nic, [](ServiceResolution& services) { return services.answers_kept(); });
  }

  // A request to b_ as a stranger would send it.
  static SidrReqMad StrangersReq(uint16_t host, uint32_t id) {
    SidrReqMad req;
    req.request_id = id;
    req.service_id = ServiceId(PortSpace::kUdp, kPort);
    req.private_data = JoinPrivateData({FakeAddress(host, 40000), FakeAddress(2)}, ServiceData{});
    return req;
  }
  DatagramResult Deliver(uint16_t host, const SidrReqMad& req, uint64_t transaction = 1) {
    return b_->ReceiveMad(FakeAddress(host), {transaction, req});
  }

  SidrStatus StatusOfLast() const { return std::get<SidrRepMad>(wire_.sent.back().body).status; }

  void Run(Duration duration) { scheduler_.RunFor(duration); }

  sim::Scheduler scheduler_;
  FakeWire wire_{scheduler_};
  std::shared_ptr<FakeNic> a_;
  std::shared_ptr<FakeNic> b_;
};

TEST_F(ServiceResolutionTest, AnAskerLearnsTheQueuePairThatServes) {
  Server server;
  Asker asker;
  ASSERT_EQ(Listen(*b_, server).value(), kPort);
  ASSERT_TRUE(Ask(*a_, asker, At(*b_), 40000, Text("hello")).ok());
  Run(Milliseconds(1));
  ASSERT_EQ(server.woken, 1);
  const std::optional<ServiceRequest> request = Take(*b_, server);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->peer, FakeAddress(1, 40000));
  EXPECT_EQ(request->private_data, Text("hello"));
  EXPECT_FALSE(Take(*b_, server));

  ASSERT_TRUE(Answer(*b_, request->key, SomeAnswer()).ok());
  Run(Milliseconds(1));
  ASSERT_EQ(asker.told, 1);
  EXPECT_EQ(asker.rep->status, SidrStatus::kSuccess);
  EXPECT_EQ(asker.rep->queue_pair, 0x1234u);
  EXPECT_EQ(asker.rep->qkey, kServiceQkey);
  EXPECT_EQ(asker.rep->service_id, ServiceId(PortSpace::kUdp, kPort));
  EXPECT_EQ(asker.rep->private_data[0], 'a');
  Run(Seconds(100));
  EXPECT_EQ(wire_.Names(), "SIDR_REQ SIDR_REP");
  EXPECT_EQ(asker.told, 1);
}

TEST_F(ServiceResolutionTest, AListenerMayRefuse) {
  Server server;
  Asker asker;
  ASSERT_TRUE(Listen(*b_, server).ok());
  ASSERT_TRUE(Ask(*a_, asker, At(*b_)).ok());
  Run(Milliseconds(1));
  SidrRepMad refusal;
  refusal.status = SidrStatus::kNoQueuePair;
  ASSERT_TRUE(Answer(*b_, Take(*b_, server)->key, refusal).ok());
  Run(Milliseconds(1));
  EXPECT_EQ(asker.rep->status, SidrStatus::kNoQueuePair);
}

TEST_F(ServiceResolutionTest, APortWithoutAListenerIsReported) {
  Server server;
  Asker asker;
  ASSERT_TRUE(Listen(*b_, server, kPort + 1).ok());
  ASSERT_TRUE(Ask(*a_, asker, At(*b_)).ok());
  Run(Milliseconds(1));
  ASSERT_EQ(asker.told, 1);
  EXPECT_EQ(asker.rep->status, SidrStatus::kUnsupportedService);
}

TEST_F(ServiceResolutionTest, PortsOfConnectionsAreSeparate) {
  const auto listener = b_->manager->Listen(b_->owner, At(*b_), [](std::unique_ptr<ConnectionRequest>) {});
  ASSERT_TRUE(listener.ok());
  Server server;
  EXPECT_TRUE(Listen(*b_, server).ok());
  Server second;
  EXPECT_EQ(Listen(*b_, second).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_GE(Listen(*b_, second, 0).value(), kFirstChosenPort);
  Forget(*b_, server);
  Server third;
  EXPECT_TRUE(Listen(*b_, third).ok());
}

TEST_F(ServiceResolutionTest, AQuestionIsRepeatedUntilNobodyCanBeExpectedToAnswer) {
  Asker asker;
  ASSERT_TRUE(Ask(*a_, asker, FakeAddress(9, kPort)).ok());
  Run(Milliseconds(500));
  EXPECT_EQ(wire_.Names(), "SIDR_REQ SIDR_REQ SIDR_REQ");
  EXPECT_EQ(asker.told, 0);
  Run(Seconds(60));
  EXPECT_EQ(asker.told, 1);
  EXPECT_FALSE(asker.rep);
  EXPECT_EQ(wire_.sent.size(), 1u + kServiceRepeats);
  for (const Mad& mad : wire_.sent) EXPECT_EQ(EncodeMad(mad), EncodeMad(wire_.sent.front()));
}

TEST_F(ServiceResolutionTest, ARepeatedQuestionGetsTheSameAnswerAndIsReportedOnce) {
  Server server;
  Asker asker;
  int answers = 0;
  wire_.filter = [&](const Mad& mad) {
    const bool lost = std::holds_alternative<SidrRepMad>(mad.body) && ++answers <= 3;
    return lost ? std::vector<Duration>{} : std::vector<Duration>{Milliseconds(1), Milliseconds(2)};
  };
  ASSERT_TRUE(Listen(*b_, server).ok());
  ASSERT_TRUE(Ask(*a_, asker, At(*b_)).ok());
  Run(Milliseconds(300));  // asked twice, and heard four times
  EXPECT_EQ(server.woken, 1);
  ASSERT_TRUE(Answer(*b_, Take(*b_, server)->key, SomeAnswer()).ok());
  Run(Seconds(5));
  EXPECT_EQ(asker.told, 1);
  EXPECT_EQ(asker.rep->queue_pair, 0x1234u);
  EXPECT_EQ(server.woken, 1);
  EXPECT_GT(answers, 3);
}

TEST_F(ServiceResolutionTest, AForgottenAskerGetsNoAnswer) {
  Server server;
  auto asker = std::make_unique<Asker>();
  ASSERT_TRUE(Listen(*b_, server).ok());
  ASSERT_TRUE(Ask(*a_, *asker, At(*b_)).ok());
  Run(Milliseconds(1));
  Forget(*a_, *asker);
  asker.reset();
  ASSERT_TRUE(Answer(*b_, Take(*b_, server)->key, SomeAnswer()).ok());
  Run(Seconds(60));
  EXPECT_EQ(wire_.Names(), "SIDR_REQ SIDR_REP");
}

TEST_F(ServiceResolutionTest, AListenerThatLeavesRefusesUnknownRequests) {
  Server server;
  Asker first;
  Asker second;
  ASSERT_TRUE(Listen(*b_, server).ok());
  ASSERT_TRUE(Ask(*a_, first, At(*b_)).ok());
  ASSERT_TRUE(Ask(*a_, second, At(*b_)).ok());
  Run(Milliseconds(1));
  const std::optional<ServiceRequest> known = Take(*b_, server);
  Forget(*b_, server);
  Run(Milliseconds(1));
  EXPECT_EQ(first.told + second.told, 1);
  ASSERT_TRUE(Answer(*b_, known->key, SomeAnswer()).ok());
  Run(Milliseconds(1));
  EXPECT_EQ(first.rep->status, SidrStatus::kSuccess);
  EXPECT_EQ(second.rep->status, SidrStatus::kUnsupportedService);
  EXPECT_EQ(Waiting(*b_), 0u);
}

TEST_F(ServiceResolutionTest, ARequestThatIsNotAnsweredInTimeIsRejected) {
  Server server;
  ASSERT_TRUE(Listen(*b_, server).ok());
  Deliver(9, StrangersReq(9, 1));
  Deliver(9, StrangersReq(9, 2));
  const std::optional<ServiceRequest> known = Take(*b_, server);
  Run(kMaxServiceTime + Milliseconds(1));
  EXPECT_EQ(wire_.Names(), "SIDR_REP SIDR_REP");
  EXPECT_EQ(StatusOfLast(), SidrStatus::kRejected);
  EXPECT_EQ(Answer(*b_, known->key, SomeAnswer()).code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(Take(*b_, server));
  Run(kServiceAnswerKept);
  EXPECT_EQ(AnswersKept(*b_), 0u);
}

TEST_F(ServiceResolutionTest, OnlyTheDeviceThatWasAskedMayAnswer) {
  Asker asker;
  ASSERT_TRUE(Ask(*a_, asker, At(*b_)).ok());
  const Mad question = wire_.sent.front();
  SidrRepMad answer = SomeAnswer();
  answer.request_id = std::get<SidrReqMad>(question.body).request_id;
  wire_.filter = [](const Mad&) { return std::vector<Duration>{}; };
  a_->ReceiveMad(FakeAddress(9), {question.transaction, answer});
  a_->ReceiveMad(FakeAddress(2), {question.transaction + 1, answer});
  ++answer.request_id;
  a_->ReceiveMad(FakeAddress(2), {question.transaction, answer});
  EXPECT_EQ(asker.told, 0);
  --answer.request_id;
  a_->ReceiveMad(FakeAddress(2), {question.transaction, answer});
  a_->ReceiveMad(FakeAddress(2), {question.transaction, answer});
  EXPECT_EQ(asker.told, 1);
}

TEST_F(ServiceResolutionTest, ARequestInAnothersNameOrPartitionIsRejected) {
  Server server;
  ASSERT_TRUE(Listen(*b_, server).ok());
  Deliver(9, StrangersReq(8, 1));
  EXPECT_EQ(StatusOfLast(), SidrStatus::kRejected);
  SidrReqMad req = StrangersReq(9, 2);
  req.pkey = 0x8001;
  Deliver(9, req);
  EXPECT_EQ(StatusOfLast(), SidrStatus::kRejected);
  req = StrangersReq(9, 3);
  req.private_data[0] = 1;
  Deliver(9, req);
  EXPECT_EQ(StatusOfLast(), SidrStatus::kRejected);
  req = StrangersReq(9, 4);
  req.service_id = ServiceId(PortSpace::kTcp, kPort);
  Deliver(9, req);
  EXPECT_EQ(StatusOfLast(), SidrStatus::kUnsupportedService);
  EXPECT_EQ(wire_.sent.size(), 4u);
  EXPECT_EQ(server.woken, 0);
}

TEST_F(ServiceResolutionTest, RequestsThatWaitAreBoundedForOneAddressAndInAll) {
  Server server;
  ASSERT_TRUE(Listen(*b_, server).ok());
  for (uint32_t id = 1; id <= kServiceRequests.of_one; ++id) {
    EXPECT_EQ(Deliver(9, StrangersReq(9, id)), DatagramResult::kTaken);
  }
  EXPECT_EQ(Deliver(9, StrangersReq(9, 1000)), DatagramResult::kRefused);
  EXPECT_EQ(Deliver(9, StrangersReq(9, 1)), DatagramResult::kTaken) << "a repetition takes no place";
  uint16_t host = 10;
  for (uint32_t id = 1; Waiting(*b_) < kServiceRequests.of_all; ++id) {
    if (Deliver(host, StrangersReq(host, id)) == DatagramResult::kRefused) ++host;
  }
  EXPECT_EQ(Deliver(300, StrangersReq(300, 1)), DatagramResult::kRefused);
  EXPECT_TRUE(wire_.sent.empty());

  ASSERT_TRUE(Answer(*b_, Take(*b_, server)->key, SomeAnswer()).ok());
  EXPECT_EQ(Deliver(300, StrangersReq(300, 1)), DatagramResult::kTaken);
}

TEST_F(ServiceResolutionTest, AnswersThatAreRememberedAreBounded) {
  Server server;
  ASSERT_TRUE(Listen(*b_, server).ok());
  for (uint32_t id = 1; id <= kMaxServiceAnswers + 10; ++id) {
    Deliver(9, StrangersReq(9, id));
    ASSERT_TRUE(Answer(*b_, Take(*b_, server)->key, SomeAnswer()).ok());
  }
  EXPECT_EQ(AnswersKept(*b_), kMaxServiceAnswers);
  Deliver(9, StrangersReq(9, 1));
  EXPECT_TRUE(Take(*b_, server)) << "the oldest was forgotten";
  Run(kServiceAnswerKept + Milliseconds(1));
  EXPECT_EQ(AnswersKept(*b_), 0u);
}

TEST_F(ServiceResolutionTest, AnAddressThatNoPeerCanHaveIsNotAsked) {
  Asker asker;
  EXPECT_EQ(Ask(*a_, asker, FakeAddress(2, 0)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Ask(*a_, asker, Address::Parse("[fd00::1]:7").value()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(wire_.sent.empty());
}

}  // namespace
}  // namespace tokamak::verbs::soft
