// The contract of an engine (engine.h), whether it shares the node's loop or has one of its own.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tests/node/engine_bench.h"

namespace tokamak::node {
namespace {

using base::Microseconds;
using base::Milliseconds;
using base::Seconds;

// The contract, which both keep.
class EngineTest : public EngineBench, public testing::WithParamInterface<size_t> {
 protected:
  EngineTest() : EngineBench(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Both, EngineTest, testing::Values(kLocalEngine, kThreadedEngine), kNameOfEngine);

// ---- calls

TEST_P(EngineTest, ACallReachesTheServiceOfAPeerAndItsReplyComesBack) {
  Build(2);
  Call(0, 1);
  EXPECT_TRUE(AwaitAnswers(1));
  EXPECT_TRUE(answers_[0].ok()) << answers_[0];
}

TEST_P(EngineTest, RepliesComeInTheOrderOfTheCalls) {
  Build(2);
  for (size_t i = 0; i < 100; ++i) Call(0, 1);
  EXPECT_TRUE(AwaitAnswers(100));
  EXPECT_EQ(Count(absl::StatusCode::kOk), 100u);
  EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end()));
}

TEST_P(EngineTest, AnAnswerMayBeginACallAndDropHandles) {
  Build(2);
  base::Pending first, dropped, next;
  bool answered = false;
  const std::vector<uint8_t> request = RequestOf(Service::kObjects, 10);
  first = EngineOf(0).programs().Call(AddressOf(1), request, Seconds(20), [&](const auto& reply) {
    EXPECT_TRUE(reply.ok()) << reply.status();
    first.reset();
    dropped.reset();
    next = EngineOf(0).programs().Call(AddressOf(1), request, Seconds(20), [&](const auto&) { answered = true; });
    EXPECT_FALSE(answered);
  });
  dropped = EngineOf(0).programs().Call(AddressOf(1), request, Seconds(20),
                                        [](const auto&) { ADD_FAILURE() << "its handle was dropped"; });
  EXPECT_TRUE(cluster_->RunUntil([&] { return answered; }));
}

TEST_P(EngineTest, AnUnansweredCallIsReportedSoonToThePeer) {
  Build(2);
  at(1).node().call_router().Register(Service::kObjects,
                                      [](absl::Span<const uint8_t>, const CallRouter::Reply&) { return nullptr; });
  const base::Time asked = cluster_->time.Now();
  Call(0, 1);
  EXPECT_TRUE(AwaitAnswers(1));
  EXPECT_TRUE(absl::IsUnavailable(answers_[0])) << answers_[0];
  EXPECT_LT(cluster_->time.Now() - asked, Milliseconds(10));
}

TEST_P(EngineTest, ARequestThatIsTooLongIsRefused) {
  Build(2);
  Call(0, 1, EngineOf(0).max_call_size() + 1);
  EXPECT_TRUE(AwaitAnswers(1));
  EXPECT_TRUE(absl::IsInvalidArgument(answers_[0])) << answers_[0];
}

TEST_P(EngineTest, ACallToAnAbsentPeerEndsByItsDeadline) {
  Build(2);
  const verbs::Address nobody = *verbs::Address::Parse("10.0.0.99:7000");
  const base::Time asked = cluster_->time.Now();
  CallBy(EngineOf(0).programs(), nobody, {1}, Seconds(2));
  EXPECT_TRUE(AwaitAnswers(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers_[0]) || absl::IsUnavailable(answers_[0])) << answers_[0];
  EXPECT_LE(cluster_->time.Now() - asked, Seconds(2) + Milliseconds(1));
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
      ++begun_;
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
  size_t begun_ = 0;
  Work* last_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Both, EngineWorkTest, testing::Values(kLocalEngine, kThreadedEngine), kNameOfEngine);

TEST_P(EngineWorkTest, EndsWithTheReply) {
  last_->reply({});
  cluster_->RunFor(base::Nanoseconds(1));
  EXPECT_EQ(working_, 0);
  EXPECT_TRUE(AwaitAnswers(1));
  EXPECT_TRUE(answers_[0].ok()) << answers_[0];
}

TEST_P(EngineWorkTest, EndsWhenTheAskerDropsItsHandle) {
  calls_.clear();
  EXPECT_TRUE(AwaitNoWork());
  cluster_->RunFor(Seconds(30));
  EXPECT_TRUE(answers_.empty());
}

TEST_P(EngineWorkTest, EndsWhenTheAskersEngineEnds) {
  at(0).EndEngines();
  EXPECT_TRUE(AwaitNoWork());
}

TEST_P(EngineWorkTest, EndsWithTheEngine) {
  at(1).EndEngines();
  EXPECT_TRUE(AwaitNoWork());
  EXPECT_TRUE(AwaitAnswers(1));
  EXPECT_TRUE(absl::IsUnavailable(answers_[0])) << answers_[0];
}

TEST_P(EngineWorkTest, EndsWhenTheNodeStopsServing) {
  EngineOf(1).StopServing();
  EXPECT_TRUE(AwaitNoWork());
  EXPECT_TRUE(AwaitAnswers(1));
  EXPECT_TRUE(absl::IsUnavailable(answers_[0])) << answers_[0];
  Call(0, 1);
  EXPECT_TRUE(AwaitAnswers(2));
  EXPECT_TRUE(absl::IsUnavailable(answers_[1])) << answers_[1];
}

TEST_P(EngineWorkTest, AReplyThatCrossesTheCancellationCountsForNothing) {
  last_->reply({});
  calls_.clear();
  cluster_->RunFor(Seconds(30));
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(working_, 0);
}

TEST_P(EngineWorkTest, CancelledCallsMakeRoom) {
  for (size_t i = 1; i < kMaxCallsOfPeer; ++i) Call(0, 1);
  calls_.clear();
  cluster_->RunFor(Milliseconds(1));
  for (size_t i = 0; i < kMaxCallsOfPeer; ++i) Call(0, 1);
  cluster_->RunFor(Milliseconds(1));
  EXPECT_EQ(working_, static_cast<int>(kMaxCallsOfPeer));
  EXPECT_TRUE(answers_.empty()) << answers_[0];
}

TEST_P(EngineWorkTest, ProgramsCallsBeyondTheBoundWaitAndTheNodesOwnDoNot) {
  for (size_t i = 1; i < kMaxCallsOfPeer + 10; ++i) Call(0, 1);
  cluster_->RunFor(Milliseconds(1));
  EXPECT_EQ(working_, static_cast<int>(kMaxCallsOfPeer));
  for (size_t i = 0; i < kOwnCalls; ++i) CallForItself(0, 1);
  cluster_->RunFor(Milliseconds(1));
  EXPECT_EQ(working_, static_cast<int>(kMaxCallsOfPeer + kOwnCalls)) << "at the peer, too, they have room";
  last_->reply({});
  EXPECT_TRUE(AwaitAnswers(1));
  calls_.erase(calls_.begin());
  cluster_->RunFor(Milliseconds(1));
  EXPECT_EQ(working_, static_cast<int>(kMaxCallsOfPeer + kOwnCalls) - 1) << "one gone, and one whose turn it is";
}

TEST_P(EngineWorkTest, WhenAProgramDropsAllItsCallsNoneThatWaitedIsSentOnceMore) {
  for (size_t i = 1; i < kMaxCallsOfPeer + 50; ++i) Call(0, 1);
  cluster_->RunFor(Milliseconds(1));
  EXPECT_EQ(begun_, kMaxCallsOfPeer);
  for (base::Pending& call : calls_) call.reset();  // the first makes room for one that goes as well
  EXPECT_TRUE(AwaitNoWork());
  EXPECT_EQ(begun_, kMaxCallsOfPeer);
}

TEST_P(EngineWorkTest, ACallThatWaitsForATurnUntilItsDeadlineReportsIt) {
  for (size_t i = 1; i < kMaxCallsOfPeer; ++i) Call(0, 1);
  const base::Time asked = cluster_->time.Now();
  Call(0, 1, 10, Seconds(2));
  EXPECT_TRUE(AwaitAnswers(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers_[0])) << answers_[0];
  EXPECT_EQ(cluster_->time.Now() - asked, Seconds(2));
}

TEST_P(EngineWorkTest, APeerThatDoesNotAnswerLeavesTurnsForOthers) {
  cluster_->Add();
  cluster_->Settle();
  for (size_t i = 0; i < 5000; ++i) Call(0, 1);
  Call(0, 2);
  EXPECT_TRUE(AwaitAnswers(1, Milliseconds(10)));
  EXPECT_TRUE(answers_[0].ok()) << answers_[0];
}

TEST_P(EngineWorkTest, TheNodesOwnCallsHaveABoundToo) {
  for (size_t i = 0; i < kOwnCalls + 5; ++i) CallForItself(0, 1);
  EXPECT_TRUE(AwaitAnswers(5));
  EXPECT_EQ(Count(absl::StatusCode::kResourceExhausted), 5u);
  EXPECT_EQ(order_, (std::vector<size_t>{97, 98, 99, 100, 101})) << "after the first, which is a program's";
}

TEST_P(EngineWorkTest, CallsEndWithThePeer) {
  for (size_t i = 0; i < 20; ++i) Call(0, 1);
  cluster_->RunFor(Milliseconds(1));
  cluster_->Crash(1);
  EXPECT_TRUE(AwaitAnswers(21));
  EXPECT_EQ(Count(absl::StatusCode::kOk), 0u);
  EXPECT_EQ(working_, 0);
}

// ---- pulls

TEST_P(EngineTest, APullBringsTheBytesAndReportsIt) {
  Build(2);
  Put(1, "x", kSize);
  ASSERT_EQ(Pull(0, 1, "x", kSize), absl::OkStatus());
  EXPECT_EQ(EngineOf(0).pulls(), 1u);
  EXPECT_TRUE(AwaitPulls(1));
  EXPECT_EQ(pulls_[0]->status, absl::OkStatus());
  EXPECT_EQ(pulls_[0]->report.arrived, kSize);
  EXPECT_TRUE(IsLike(1, "x", *pulls_[0]));
  EXPECT_EQ(EngineOf(0).pulls(), 0u);
  EngineOf(0).Cancel(pulls_[0]->token);  // it is over: nothing happens
  cluster_->RunFor(Milliseconds(1));
  EXPECT_EQ(at(1).node().pins_of_peers(), 0u);
  DropPlaces(0);
}

TEST_P(EngineTest, APullOfWhatTheHolderLacksIsRefusedByIt) {
  Build(2);
  ASSERT_EQ(Pull(0, 1, "x", kSize), absl::OkStatus());
  EXPECT_TRUE(AwaitPulls(1));
  EXPECT_TRUE(absl::IsNotFound(pulls_[0]->status)) << pulls_[0]->status;
  DropPlaces(0);
}

TEST_P(EngineTest, ACancelledPullEndsWhenItsMemoryIsSafe) {
  Build(2);
  Put(1, "x", kSize);
  ASSERT_EQ(Pull(0, 1, "x", kSize), absl::OkStatus());
  in_call_ = true;
  EngineOf(0).Cancel(pulls_[0]->token);
  in_call_ = false;
  EXPECT_TRUE(AwaitPulls(1, Seconds(5)));
  EXPECT_TRUE(absl::IsCancelled(pulls_[0]->status)) << pulls_[0]->status;
  EXPECT_TRUE(cluster_->RunUntil([&] { return at(1).node().pins_of_peers() == 0; }, Seconds(5)));
  DropPlaces(0);
}

TEST_P(EngineTest, APullsEndMayBeginTheNext) {
  Build(2);
  Put(1, "x", kSize);
  std::atomic<uint64_t> moved{0};
  ASSERT_EQ(Pull(0, 1, "x", kSize), absl::OkStatus());
  const OnePull& first = *pulls_[0];
  transport::PullRequest request;
  request.id = Id("x");
  request.generation = GenerationOn(1, "x");
  request.owner = AddressOf(1);
  request.size = {kSize, 0};
  EXPECT_TRUE(AwaitPulls(1));
  int ends = 0;
  Engine::PullCallback again = [&](const absl::Status& status, const auto&) {
    EXPECT_EQ(status, absl::OkStatus());
    if (++ends == 5) return;
    EXPECT_TRUE(EngineOf(0).Pull(request, first.memory, moved, again).ok());
  };
  EXPECT_TRUE(EngineOf(0).Pull(request, first.memory, moved, again).ok());
  EXPECT_TRUE(cluster_->RunUntil([&] { return ends == 5; }));
  EXPECT_EQ(EngineOf(0).pulls(), 0u);
  DropPlaces(0);
}

TEST_P(EngineTest, PullsBeyondTheBoundAreRefusedAtOnce) {
  Build(2);
  Put(1, "x", 64);
  for (size_t i = 0; i < kMaxEnginePulls; ++i) ASSERT_EQ(Pull(0, 1, "x", 64), absl::OkStatus());
  const absl::Status refused = Pull(0, 1, "x", 64);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(AwaitPulls(kMaxEnginePulls));
  EXPECT_EQ(Pull(0, 1, "x", 64), absl::OkStatus());
  EXPECT_TRUE(AwaitPulls(kMaxEnginePulls + 1));
  EXPECT_EQ(ended_.back()->status, absl::OkStatus());
  DropPlaces(0);
}

TEST_P(EngineTest, PullsEndWithThePeer) {
  Build(2);
  Put(1, "x", kSize);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(Pull(0, 1, "x", kSize), absl::OkStatus());
  EXPECT_TRUE(Serves(1));
  cluster_->Crash(1);
  EXPECT_TRUE(AwaitPulls(10));
  for (const OnePull* pull : ended_) EXPECT_FALSE(pull->status.ok());
  DropPlaces(0);
}

// ---- what peers ask of the node

TEST_P(EngineTest, PinsOfAPeerThatIsGoneComeBack) {
  Build(2);
  Put(1, "x", kSize);
  ASSERT_EQ(Pull(0, 1, "x", kSize), absl::OkStatus());
  EXPECT_TRUE(Serves(1));
  at(0).EndEngines();
  EXPECT_TRUE(cluster_->RunUntil([&] { return at(1).node().pins_of_peers() == 0; }, Seconds(5)));
  cluster_->RunFor(Milliseconds(1));
  EXPECT_TRUE(pulls_[0]->done);
  DropPlaces(0);
}

TEST_P(EngineTest, PinsOfPeersComeBackWhenTheEngineEnds) {
  Build(2);
  Put(1, "x", kSize);
  ASSERT_EQ(Pull(0, 1, "x", kSize), absl::OkStatus());
  EXPECT_TRUE(Serves(1));
  at(1).EndEngines();
  cluster_->RunFor(Microseconds(1));
  EXPECT_EQ(at(1).node().pins_of_peers(), 0u);
  EXPECT_TRUE(AwaitPulls(1));
  DropPlaces(0);
}

TEST_P(EngineTest, ANodeThatServesNobodyRefusesPeers) {
  Build(2);
  Put(1, "x", kSize);
  EngineOf(1).StopServing();
  ASSERT_EQ(Pull(0, 1, "x", kSize), absl::OkStatus());
  EXPECT_TRUE(AwaitPulls(1));
  EXPECT_TRUE(absl::IsUnavailable(pulls_[0]->status)) << pulls_[0]->status;
  EXPECT_NE(pulls_[0]->status.message().find("does not serve objects now"), std::string::npos) << pulls_[0]->status;
  DropPlaces(0);
}

TEST_P(EngineTest, ABusyControlLoopDelaysPullsAndLosesNone) {
  Build(3);
  const uint64_t size = number_ == kLocalEngine ? 1000 : 70'000;  // bulk, beyond the short way
  std::vector<std::string> names;
  for (int i = 0; i < (number_ == kLocalEngine ? 300 : 50); ++i) {
    names.push_back(absl::StrCat(i));
    ASSERT_EQ(at(0).Put(names.back(), size), absl::OkStatus());
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

// ---- draining

TEST_P(EngineTest, AnEngineIsDrainedWhenPeersHaveAllThatItSent) {
  Build(3);
  Put(1, "x", kSize);
  ASSERT_EQ(Pull(2, 1, "x", kSize), absl::OkStatus());
  EXPECT_TRUE(Serves(1));
  std::vector<int> drained;
  for (int i = 0; i < 3; ++i) {
    EngineOf(1).Drain([&drained, i] { drained.push_back(i); });
  }
  EXPECT_TRUE(drained.empty());
  EXPECT_TRUE(cluster_->RunUntil([&] { return drained.size() == 3; }));
  EXPECT_EQ(drained, (std::vector<int>{0, 1, 2}));
  cluster_->RunFor(Microseconds(1));
  EXPECT_EQ(at(1).node().pins_of_peers(), 0u);
  cluster_->Crash(1);
  EXPECT_TRUE(AwaitPulls(1));
  EXPECT_EQ(pulls_[0]->status, absl::OkStatus());
  DropPlaces(2);
}

TEST_P(EngineTest, AnEngineThatIsDrainedRefusesTransfersAndAnswersCalls) {
  Build(2);
  Put(1, "x", kSize);
  bool drained = false;
  EngineOf(1).Drain([&] { drained = true; });
  EXPECT_TRUE(cluster_->RunUntil([&] { return drained; }, Seconds(1)));
  ASSERT_EQ(Pull(0, 1, "x", kSize), absl::OkStatus());
  Call(0, 1);
  EXPECT_TRUE(AwaitPulls(1));
  EXPECT_TRUE(absl::IsUnavailable(pulls_[0]->status)) << pulls_[0]->status;
  EXPECT_TRUE(AwaitAnswers(1));
  EXPECT_TRUE(answers_[0].ok()) << answers_[0];
  DropPlaces(0);
}

TEST_P(EngineTest, TheEndOfDrainingMayEndTheEngine) {
  Build(2);
  EngineOf(0).Drain([this] { at(0).EndEngines(); });
  EXPECT_TRUE(cluster_->RunUntil([&] { return !EngineOf(0).open(); }, Milliseconds(10)));
}

TEST_P(EngineTest, AnEngineThatHasEndedIsDrained) {
  Build(1);
  std::vector<int> drained;
  EngineOf(0).Drain([&] { drained.push_back(0); });
  at(0).EndEngines();
  EngineOf(0).Drain([&] { drained.push_back(1); });
  EXPECT_TRUE(drained.empty());
  EXPECT_TRUE(cluster_->RunUntil([&] { return drained.size() == 2; }, Milliseconds(1)));
  EXPECT_EQ(drained, (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace tokamak::node
