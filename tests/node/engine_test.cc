// The link between the control loop and the engines, under load and at its end.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "lib/node/engines/engine_link.h"
#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;

class EngineTest : public NodeTest {
 protected:
  // Calls the objects' service of node `to` with a request of `size` bytes that it has no answer
  // to.
  void Call(size_t from, size_t to, size_t size = 10, base::Duration deadline = Seconds(20)) {
    CallBy(at(from).link().programs(), to, size, deadline);
  }
  // For the node's own life.
  void CallForItself(size_t from, size_t to) { CallBy(at(from).link(), to, 10, Seconds(20)); }
  void CallBy(transport::Caller& caller, size_t to, size_t size, base::Duration deadline) {
    const std::vector<uint8_t> request(size, static_cast<uint8_t>(Service::kObjects));
    verbs::Address peer = at(to).address;
    peer.port = 7000;
    in_call_ = true;
    calls_.push_back(caller.Call(peer, request, deadline, [this](absl::StatusOr<absl::Span<const uint8_t>> reply) {
      EXPECT_FALSE(in_call_);
      answers_.push_back(reply.status());
    }));
    in_call_ = false;
  }
  size_t Count(absl::StatusCode code) const {
    return static_cast<size_t>(
        std::count_if(answers_.begin(), answers_.end(), [code](const absl::Status& s) { return s.code() == code; }));
  }

  std::vector<base::Pending> calls_;
  std::vector<absl::Status> answers_;
  bool in_call_ = false;
};

TEST_F(EngineTest, ACallReachesTheServiceOfAPeerAndItsReplyComesBack) {
  Build(2);
  Call(0, 1);
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 1; }));
  EXPECT_TRUE(answers_[0].ok()) << answers_[0];
}

TEST_F(EngineTest, AnUnansweredCallIsReportedSoonToThePeer) {
  Build(2);
  at(1).node().call_router().Register(Service::kObjects,
                                      [](absl::Span<const uint8_t>, const CallRouter::Reply&) { return nullptr; });
  const base::Time asked = cluster_->time.Now();
  Call(0, 1);
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(answers_[0])) << answers_[0];
  EXPECT_LT(cluster_->time.Now() - asked, Milliseconds(10));
}

// A service of node 1 that answers nothing, and how much it works on.
class EngineWorkTest : public EngineTest {
 protected:
  struct Work final : base::Handle {
    Work(int& c, CallRouter::Reply r) : count(c), reply(std::move(r)) { ++count; }
    ~Work() override { --count; }
    int& count;
    CallRouter::Reply reply;
  };

  void SetUp() override {
    Build(2);
    at(1).node().call_router().Register(Service::kObjects, [this](absl::Span<const uint8_t>, CallRouter::Reply reply) {
      auto work = std::make_unique<Work>(working_, std::move(reply));
      last_ = work.get();
      return work;
    });
    Call(0, 1);
    ASSERT_TRUE(cluster_->RunUntil([&] { return working_ == 1; }));
  }
  void TearDown() override {
    EngineTest::TearDown();
    cluster_.reset();
    EXPECT_EQ(working_, 0);
  }
  bool AwaitNoWork() {
    return cluster_->RunUntil([&] { return working_ == 0; }, Milliseconds(100));
  }

  int working_ = 0;
  Work* last_ = nullptr;
};

TEST_F(EngineWorkTest, EndsWithTheReply) {
  last_->reply({});
  EXPECT_EQ(working_, 0);
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 1; }));
  EXPECT_TRUE(answers_[0].ok()) << answers_[0];
}

TEST_F(EngineWorkTest, EndsWhenTheAskerDropsItsHandle) {
  calls_.clear();
  EXPECT_TRUE(AwaitNoWork());
  cluster_->RunFor(Seconds(30));
  EXPECT_TRUE(answers_.empty());
}

TEST_F(EngineWorkTest, EndsWhenTheAskersEngineEnds) {
  at(0).EndEngines();
  EXPECT_TRUE(AwaitNoWork());
}

TEST_F(EngineWorkTest, EndsWhenTheLinkStopsServing) {
  at(1).link().StopServing();
  EXPECT_TRUE(AwaitNoWork());
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(answers_[0])) << answers_[0];
}

TEST_F(EngineWorkTest, AReplyThatCrossesTheCancellationCountsForNothing) {
  last_->reply({});
  calls_.clear();
  cluster_->RunFor(Seconds(30));
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(working_, 0);
}

TEST_F(EngineWorkTest, CancelledCallsMakeRoomWhenTheEngineHasHeardOfThem) {
  for (size_t i = 1; i < kMaxCallsOfPeer; ++i) Call(0, 1);
  calls_.clear();
  cluster_->RunFor(Milliseconds(1));
  for (size_t i = 0; i < kMaxCallsOfPeer; ++i) Call(0, 1);
  cluster_->RunFor(Milliseconds(1));
  EXPECT_EQ(working_, static_cast<int>(kMaxCallsOfPeer));
  EXPECT_TRUE(answers_.empty()) << answers_[0];
}

TEST_F(EngineWorkTest, ProgramsCallsBeyondTheBoundWaitAndTheNodesOwnDoNot) {
  for (size_t i = 1; i < kMaxCallsOfPeer + 10; ++i) Call(0, 1);
  cluster_->RunFor(Milliseconds(1));
  EXPECT_EQ(working_, static_cast<int>(kMaxCallsOfPeer));
  for (size_t i = 0; i < kOwnCalls; ++i) CallForItself(0, 1);
  cluster_->RunFor(Milliseconds(1));
  EXPECT_EQ(working_, static_cast<int>(kMaxCallsOfPeer + kOwnCalls)) << "at the peer, too, they have room";
  last_->reply({});
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 1; }));
  calls_.erase(calls_.begin());
  cluster_->RunFor(Milliseconds(1));
  EXPECT_EQ(working_, static_cast<int>(kMaxCallsOfPeer + kOwnCalls) - 1) << "one gone, and one whose turn it is";
}

TEST_F(EngineWorkTest, ACallThatWaitsForATurnUntilItsDeadlineReportsIt) {
  for (size_t i = 1; i < kMaxCallsOfPeer; ++i) Call(0, 1);
  const base::Time asked = cluster_->time.Now();
  Call(0, 1, 10, Seconds(2));
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 1; }));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers_[0])) << answers_[0];
  EXPECT_EQ(cluster_->time.Now() - asked, Seconds(2));
}

TEST_F(EngineWorkTest, APeerThatDoesNotAnswerLeavesTurnsForOthers) {
  cluster_->Add();
  cluster_->Settle();
  for (size_t i = 0; i < 5000; ++i) Call(0, 1);
  Call(0, 2);
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 1; }, Milliseconds(10)));
  EXPECT_TRUE(answers_[0].ok()) << answers_[0];
}

TEST_F(EngineWorkTest, TheNodesOwnCallsHaveABoundToo) {
  for (size_t i = 0; i < kOwnCalls + 5; ++i) CallForItself(0, 1);
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 5; }));
  EXPECT_EQ(Count(absl::StatusCode::kResourceExhausted), 5u);
}

TEST_F(EngineTest, WaitingCallsEndWithTheEngine) {
  Build(2);
  for (size_t i = 0; i < 5000; ++i) Call(0, 1);
  at(0).EndEngines();
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 5000; }));
}

TEST_F(EngineTest, ARequestThatIsTooLongIsRefused) {
  Build(2);
  Call(0, 1, at(0).link().max_call_size() + 1);
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 1; }));
  EXPECT_TRUE(absl::IsInvalidArgument(answers_[0])) << answers_[0];
}

TEST_F(EngineTest, ACallToAnAbsentPeerEndsByItsDeadline) {
  Build(2);
  cluster_->Crash(1);
  cluster_->Add();
  verbs::Address nobody = *verbs::Address::Parse("10.0.0.99:7000");
  const base::Time asked = cluster_->time.Now();
  const base::Pending call = at(0).link().programs().Call(
      nobody, std::vector<uint8_t>{1}, Seconds(2), [this](const auto& reply) { answers_.push_back(reply.status()); });
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 1; }));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers_[0]) || absl::IsUnavailable(answers_[0])) << answers_[0];
  EXPECT_LE(cluster_->time.Now() - asked, Seconds(2) + Milliseconds(1));
}

// A control loop that is busy for a second while eight peers call it 250 times each.
class BurstTest : public EngineTest {
 protected:
  void CallInABurst(const sim::ClusterOptions& options) {
    Build(9, {}, options);
    for (size_t i = 1; i < 9; ++i) Call(i, 0);  // connections are up
    EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 8; }));
    const base::Timer busy = at(0).loop.Post([this] { at(0).loop.Spend(Seconds(1)); });
    cluster_->RunFor(base::Microseconds(1));
    for (int n = 0; n < 250; ++n) {
      for (size_t i = 1; i < 9; ++i) Call(i, 0);
    }
    EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 8 + 8 * 250; }));
  }
};

TEST_F(BurstTest, ABurstIsHeldBackByCreditsAndNotRefused) {
  CallInABurst({});
  EXPECT_EQ(Count(absl::StatusCode::kOk), answers_.size());
}

// With windows that are large from the start more comes than fits: some of it is refused, none is
// lost.
TEST_F(BurstTest, PeersThatAskTooMuchAreRefusedAndNothingBreaks) {
  sim::ClusterOptions options;
  options.endpoint.first_slots = options.endpoint.receive_slots;
  CallInABurst(options);
  EXPECT_GT(Count(absl::StatusCode::kUnavailable), 100u);
  EXPECT_GT(Count(absl::StatusCode::kOk), 1000u);
  EXPECT_EQ(Count(absl::StatusCode::kUnavailable) + Count(absl::StatusCode::kOk), answers_.size());
}

// As a directory's node is when all its nodes' programs ask at once: nobody's lease is refused.
TEST_F(BurstTest, CallsOfNodesAboutThemselvesAreRefusedLast) {
  sim::ClusterOptions options;
  options.endpoint.first_slots = options.endpoint.receive_slots;
  options.membership.renew = Milliseconds(300);
  Build(9, {}, options);
  for (size_t i = 1; i < 9; ++i) Call(i, 0);  // connections are up
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 8; }));
  std::vector<MembershipCounters> before;
  for (size_t i = 1; i < 9; ++i) before.push_back(at(i).node().membership().counters());
  for (int second = 0; second < 2; ++second) {
    const base::Timer busy = at(0).loop.Post([this] { at(0).loop.Spend(Milliseconds(700)); });
    cluster_->RunFor(base::Microseconds(1));
    for (int n = 0; n < 250; ++n) {
      for (size_t i = 1; i < 9; ++i) Call(i, 0);
    }
    cluster_->RunFor(Seconds(1));
  }
  EXPECT_GT(Count(absl::StatusCode::kUnavailable), 100u) << "some of the programs' were refused";
  for (size_t i = 1; i < 9; ++i) {
    const MembershipCounters& after = at(i).node().membership().counters();
    EXPECT_GT(after.renewals, before[i - 1].renewals) << i;
    EXPECT_EQ(after.failed_renewals, before[i - 1].failed_renewals) << i;
  }
}

TEST_F(EngineTest, ABusyControlLoopDelaysPullsAndLosesNone) {
  Build(3);
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) {
    names.push_back(std::to_string(i));
    ASSERT_EQ(at(0).Put(names.back(), 1000), absl::OkStatus());
  }
  cluster_->Settle();
  const auto first = at(1).StartGet(names, Within(Seconds(60)));
  const auto second = at(2).StartGet(names, Within(Seconds(60)));
  for (int i = 0; i < 10; ++i) {
    const base::Timer busy = at(0).loop.Post([this] { at(0).loop.Spend(Milliseconds(30)); });
    cluster_->RunFor(Milliseconds(50));
  }
  cluster_->Await(first);
  cluster_->Await(second);
  for (const auto& got : {first, second}) {
    for (const GetResult& result : got->results) EXPECT_EQ(result.status, absl::OkStatus());
  }
  at(1).Release(*first);
  at(2).Release(*second);
}

TEST_F(EngineTest, AnEngineIsDrainedWhenPeersHaveAllThatItSent) {
  Build(3);
  ASSERT_EQ(at(1).Put("x", 60'000), absl::OkStatus());
  cluster_->Settle();
  const auto get = at(2).StartGet({"x"}, Within(Seconds(60)));
  EXPECT_TRUE(cluster_->RunUntil([&] { return at(1).node().pins_of_peers() == 1; }));
  int drained = 0;
  for (int i = 0; i < 2; ++i) at(1).link().Drain([&] { ++drained; });
  EXPECT_EQ(drained, 0);
  EXPECT_TRUE(cluster_->RunUntil([&] { return drained == 2; }));
  EXPECT_EQ(at(1).node().pins_of_peers(), 0u);
  cluster_->Crash(1);
  EXPECT_TRUE(cluster_->RunUntil([&] { return get->done; }));
  EXPECT_TRUE(at(2).Has("x"));
  at(2).Release(*get);
}

TEST_F(EngineTest, AnEngineThatHasEndedIsDrained) {
  Build(1);
  int drained = 0;
  at(0).link().Drain([&] { ++drained; });
  at(0).EndEngines();
  at(0).link().Drain([&] { ++drained; });
  EXPECT_TRUE(cluster_->RunUntil([&] { return drained == 2; }, Milliseconds(1)));
}

TEST_F(EngineTest, ALinkThatServesNobodyRefusesPeers) {
  Build(3);
  Put(1, "x", 1000);
  at(1).link().StopServing();
  const absl::Status status = cluster_->Get(at(2), "x", Within(Milliseconds(50)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_NE(status.message().find("does not serve objects now"), std::string::npos) << status;
}

TEST_F(EngineTest, AnEngineThatEndsAnswersRunningAndLaterCalls) {
  Build(2);
  at(1).node().call_router().Register(Service::kObjects, [](absl::Span<const uint8_t>, CallRouter::Reply reply) {
    static CallRouter::Reply kept;
    kept = std::move(reply);
    return nullptr;
  });
  Call(0, 1);
  cluster_->RunFor(Milliseconds(5));
  EXPECT_TRUE(answers_.empty());
  at(0).EndEngines();
  EXPECT_FALSE(at(0).link().open());
  Call(0, 1);
  EXPECT_TRUE(answers_.empty());
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers_.size() == 2; }, Milliseconds(1)));
  EXPECT_EQ(Count(absl::StatusCode::kUnavailable), 2u);
  std::atomic<uint64_t> moved = 0;
  EXPECT_TRUE(absl::IsUnavailable(at(0).link().Pull({}, {}, moved, nullptr).status()));
}

}  // namespace
}  // namespace tokamak::node
