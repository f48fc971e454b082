// A session's later answers: gets and waits for objects that are not here yet, and events.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "lib/daemon/clients/session.h"
#include "tests/daemon/clients/one_session.h"

namespace tokamak::daemon {
namespace {

using SessionWaitingTest = OneSession;

TEST_F(SessionWaitingTest, AGetWaitsForAnObjectSealedLater) {
  OpenAndGreet();
  Ask(GetOf({"late"}), 5);
  EXPECT_TRUE(sent_.empty());
  const Bytes data = {1, 2, 3};
  ASSERT_TRUE(node_.store().CreateAndSeal({Id("late"), data, {}}, node_.store().NewOwner()).ok());
  Settle();
  ASSERT_TRUE(Answered(5).ok());
  EXPECT_EQ(Body<client::GetReply>().entries.at(0).location.data_size, 3u);
}

TEST_F(SessionWaitingTest, AGetEndsAtItsTimeOut) {
  OpenAndGreet();
  Ask(GetOf({"never"}, 50'000));
  EXPECT_TRUE(sent_.empty());
  scheduler_.RunFor(base::Seconds(10));
  ASSERT_TRUE(Answered().ok());
  EXPECT_NE(Body<client::GetReply>().entries.at(0).outcome.code, absl::StatusCode::kOk);
}

TEST_F(SessionWaitingTest, AGetThatIsCancelledIsAnsweredOnceAndHoldsNothing) {
  OpenAndGreet();
  Put("here", {1});
  Ask(GetOf({"here", "late"}), 5);
  client::CancelRequest cancel;
  cancel.request_id = 5;
  ASSERT_TRUE(Tell(cancel, 0).ok());
  EXPECT_TRUE(absl::IsCancelled(Answered(5)));
  EXPECT_EQ(node_.store().statistics().waiting, 0u);
  const Bytes data = {1};
  ASSERT_TRUE(node_.store().CreateAndSeal({Id("late"), data, {}}, node_.store().NewOwner()).ok());
  Settle();
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(node_.store().statistics().pins, 0u);
}

TEST_F(SessionWaitingTest, AWaitThatIsCancelledIsAnsweredOnceAndHoldsNothing) {
  OpenAndGreet();
  client::WaitRequest wait;
  wait.timeout_microseconds = kTimeout;
  wait.count = 1;
  wait.ids = {Id("late")};
  client::CancelRequest cancel;
  cancel.request_id = 5;
  for (wait.scope = client::Scope::kLocal;; wait.scope = client::Scope::kAnywhere) {
    Ask(wait, 5);
    ASSERT_TRUE(Tell(cancel, 0).ok());
    EXPECT_TRUE(absl::IsCancelled(Answered(5)));
    scheduler_.RunFor(base::Seconds(2));
    EXPECT_TRUE(sent_.empty());
    if (wait.scope == client::Scope::kAnywhere) break;
  }
}

TEST_F(SessionWaitingTest, OnlyAGetOrAWaitIsCancelled) {
  OpenAndGreet();
  client::CancelRequest cancel;
  for (cancel.request_id = 0; cancel.request_id < 4; ++cancel.request_id) Ask(cancel, 0);
  client::CreateRequest create = CreateOf("takes most", 200 * 1024);
  Ask(create, 4);
  ASSERT_TRUE(Answered(4).ok());
  create = CreateOf("waits for room", 200 * 1024);
  create.timeout_microseconds = kTimeout;
  Ask(create, 5);
  cancel.request_id = 5;
  Ask(cancel, 0);
  EXPECT_TRUE(sent_.empty());
  Ask(cancel, 6);
  EXPECT_TRUE(Answered(6).ok()) << "who asks is told that this was done";
  scheduler_.RunFor(base::Seconds(2));
  EXPECT_TRUE(absl::IsResourceExhausted(Answered(5))) << "by its own time-out";
}

TEST_F(SessionWaitingTest, RequestsThatWaitAreBounded) {
  OpenAndGreet();
  for (size_t i = 0; i < kMaxWaitingRequests; ++i) EXPECT_TRUE(Tell(GetOf({"never"}), i + 10).ok());
  EXPECT_TRUE(sent_.empty());
  EXPECT_TRUE(Tell(GetOf({"never"}), 7).ok());
  const absl::Status refused = Answered(7);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
}

TEST_F(SessionWaitingTest, NothingIsStoredWhereAConfirmationCannotBeAwaited) {
  OpenAndGreet();
  Ask(CreateOf("created", 10));
  EXPECT_TRUE(Answered().ok());
  for (size_t i = 0; i < kMaxWaitingRequests; ++i) EXPECT_TRUE(Tell(GetOf({"never"}), i + 10).ok());

  client::SealRequest seal = About<client::SealRequest>("created");
  seal.confirmed = true;
  EXPECT_TRUE(Tell(seal, 7).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Answered(7)));
  EXPECT_FALSE(node_.store().Contains(Id("created")));
  EXPECT_EQ(node_.store().statistics().unsealed_objects, 0u);

  client::CreateAndSealRequest put;
  put.objects.push_back({Id("put"), {}, {}});
  put.confirmed = true;
  EXPECT_TRUE(Tell(put, 7).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Answered(7)));
  EXPECT_FALSE(node_.store().Contains(Id("put")));
}

TEST_F(SessionWaitingTest, BytesOfPutsThatWaitForRoomCountInTheProgramsMemory) {
  session_.reset();
  share_ = std::make_unique<ProgramShare>(100'000);
  OpenAndGreet();
  Ask(CreateOf("in the way", 250 * 1024));
  ASSERT_TRUE(Answered().ok());
  const Bytes data(60'000);
  client::CreateAndSealRequest put;
  put.timeout_microseconds = 100 * kTimeout;
  put.objects.push_back({Id("first"), data, {}});
  Ask(put, 2);
  EXPECT_TRUE(sent_.empty()) << "it waits";
  EXPECT_GT(share_->memory.used(), data.size());
  put.objects = {{Id("second"), data, {}}, {Id("small"), {}, {}}};
  Ask(put, 3);
  ASSERT_TRUE(Answered(3).ok());
  const auto outcomes = Body<client::CreateAndSealReply>().outcomes;
  EXPECT_EQ(outcomes.at(0).code, absl::StatusCode::kResourceExhausted);
  EXPECT_NE(outcomes.at(0).message.find("tokd's memory"), std::string::npos) << outcomes.at(0).message;
  Ask(About<client::AbortRequest>("in the way"), 4);
  EXPECT_EQ(sent_.size(), 2u) << "the abort's, and the first put's, which has room now";
  sent_.clear();
  EXPECT_TRUE(node_.store().Contains(Id("first")));
  EXPECT_EQ(share_->memory.used(), 0u);
}

TEST_F(SessionWaitingTest, AConfirmedCreateWaitsForRoomOnceItsIdIsFree) {
  OpenAndGreet();
  Ask(CreateOf("in the way", 200 * 1024));
  ASSERT_TRUE(Answered().ok());
  client::CreateRequest create = CreateOf("confirmed", 200 * 1024);
  create.confirmed = true;
  create.timeout_microseconds = kTimeout;
  Ask(create, 2);
  EXPECT_TRUE(sent_.empty()) << "it waits";
  ASSERT_TRUE(Tell(About<client::AbortRequest>("in the way"), 0).ok());
  Settle();
  ASSERT_TRUE(Answered(2).ok());
  EXPECT_EQ(Body<client::CreateReply>().location.data_size, 200u * 1024);
  EXPECT_EQ(share_->memory.used(), 0u);
}

TEST_F(SessionWaitingTest, AConfirmedPutThatFoundNoRoomAtOnceIsAnsweredWhenTheDirectoryHasIt) {
  OpenAndGreet();
  Ask(CreateOf("in the way", 250 * 1024));
  ASSERT_TRUE(Answered().ok());
  const Bytes data(60'000, 7);
  client::CreateAndSealRequest put;
  put.timeout_microseconds = kTimeout;
  put.confirmed = true;
  put.objects = {{Id("large"), data, {}}, {Id("small"), {}, {}}};
  Ask(put, 2);
  EXPECT_TRUE(sent_.empty()) << "the large one waits";
  EXPECT_TRUE(node_.store().Contains(Id("small")));
  ASSERT_TRUE(Tell(About<client::AbortRequest>("in the way"), 0).ok());
  Settle();
  ASSERT_TRUE(Answered(2).ok());
  for (const auto& outcome : Body<client::CreateAndSealReply>().outcomes) {
    EXPECT_EQ(outcome.code, absl::StatusCode::kOk) << outcome.message;
  }
  Ask(About<client::StatRequest>("large"), 3);
  ASSERT_TRUE(Answered(3).ok());
  EXPECT_EQ(Body<client::StatReply>().holders, std::vector<std::string>{"lonely"});
}

TEST_F(SessionWaitingTest, AwaitedObjectsAreBounded) {
  OpenAndGreet();
  client::GetRequest get = GetOf({"never"});
  get.ids.assign(client::kMaxIds, Id("never"));
  for (size_t i = 0; i < kMaxWaitingIds / client::kMaxIds; ++i) EXPECT_TRUE(Tell(get, i + 10).ok());
  EXPECT_TRUE(sent_.empty());
  EXPECT_TRUE(Tell(GetOf({"never"}), 7).ok());
  const absl::Status refused = Answered(7);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
}

// As many as one program may wait for, by `ask(number of the first id)` for each kMaxIds of them.
template <typename Request>
std::vector<Request> RequestsForAll(Request request) {
  std::vector<Request> requests;
  for (size_t first = 0; first < kMaxWaitingIds; first += client::kMaxIds) {
    request.ids.clear();
    for (size_t i = 0; i < client::kMaxIds; ++i) request.ids.push_back(Id("never " + std::to_string(first + i)));
    requests.push_back(request);
  }
  return requests;
}

TEST_F(SessionWaitingTest, AProgramAtItsBoundOfGetsLeavesWaitsForOthers) {
  OpenAndGreet();
  uint64_t number = 10;
  for (const auto& get : RequestsForAll(GetOf({}))) EXPECT_TRUE(Tell(get, ++number).ok());
  ASSERT_FALSE(sent_.empty());
  const auto header = client::DecodeHeader(sent_.front().frame);
  const absl::Status refused = client::StatusOf(*header, sent_.front().frame);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_NE(refused.message().find("this program waits for"), std::string::npos) << refused;
  EXPECT_GT(header->request_id, 15u) << "many were taken";

  // Nor has it more with another connection.
  std::unique_ptr<ProgramShare> of_first;
  const std::unique_ptr<Session> first = std::move(session_);
  OpenAndGreet();
  EXPECT_TRUE(Tell(RequestsForAll(GetOf({})).back(), 5).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Answered(5)));

  session_.reset();
  of_first = std::exchange(share_, std::make_unique<ProgramShare>(64 << 20));
  OpenAndGreet();
  EXPECT_TRUE(Tell(GetOf({"also never"}), 5).ok());
  client::WaitRequest wait;
  wait.ids = {Id("neither")};
  wait.count = 1;
  wait.timeout_microseconds = kTimeout;
  wait.scope = client::Scope::kAnywhere;
  EXPECT_TRUE(Tell(wait, 6).ok());
  scheduler_.RunFor(base::Milliseconds(100));
  EXPECT_TRUE(sent_.empty()) << "they wait";
  Settle();
}

TEST_F(SessionWaitingTest, AProgramAtItsBoundOfWaitsLeavesWaitsForOthers) {
  OpenAndGreet();
  client::WaitRequest wait;
  wait.count = 1;
  wait.timeout_microseconds = kTimeout;
  wait.scope = client::Scope::kAnywhere;
  uint64_t number = 10;
  for (const auto& one : RequestsForAll(wait)) EXPECT_TRUE(Tell(one, ++number).ok());
  EXPECT_FALSE(sent_.empty());
  const std::unique_ptr<ProgramShare> of_first = std::exchange(share_, std::make_unique<ProgramShare>(64 << 20));
  const std::unique_ptr<Session> first = std::move(session_);
  OpenAndGreet();
  EXPECT_TRUE(Tell(GetOf({"also never"}), 5).ok());
  scheduler_.RunFor(base::Milliseconds(100));
  EXPECT_TRUE(sent_.empty()) << "it waits";
}

TEST_F(SessionWaitingTest, WaitAnywhereCountsLocalObjects) {
  OpenAndGreet();
  Put("a", {1});
  client::WaitRequest wait;
  wait.timeout_microseconds = 100'000;
  wait.scope = Scope::kAnywhere;
  wait.count = 1;
  wait.ids = {Id("never"), Id("a")};
  Ask(wait);
  ASSERT_TRUE(Answered().ok());
  EXPECT_EQ(Body<client::WaitReply>().ready, (std::vector<uint8_t>{0, 1}));
  wait.count = 2;
  Ask(wait);
  EXPECT_TRUE(sent_.empty());
  scheduler_.RunFor(base::Seconds(5));
  ASSERT_TRUE(Answered().ok());
  EXPECT_EQ(Body<client::WaitReply>().ready, (std::vector<uint8_t>{0, 1}));
  wait.count = 3;
  Ask(wait);
  EXPECT_TRUE(absl::IsInvalidArgument(Answered()));
}

TEST_F(SessionWaitingTest, WaitAnywhereForNothingIsAnsweredAtOnce) {
  OpenAndGreet();
  client::WaitRequest wait;
  wait.scope = Scope::kAnywhere;
  Ask(wait);
  EXPECT_TRUE(Answered().ok());
  wait.timeout_microseconds = kTimeout;
  wait.ids = {Id("never")};
  Ask(wait);
  EXPECT_TRUE(Answered().ok());
}

TEST_F(SessionWaitingTest, WaitingRequestsEndWithTheSessionUnanswered) {
  OpenAndGreet();
  Put("here", {1});
  Ask(GetOf({"here", "never"}), 2);
  client::WaitRequest wait;
  wait.timeout_microseconds = kTimeout;
  wait.count = 1;
  wait.ids = {Id("never")};
  Ask(wait, 3);
  wait.scope = Scope::kAnywhere;
  Ask(wait, 4);
  EXPECT_TRUE(Tell(About<client::StatRequest>("here"), 5).ok());
  EXPECT_TRUE(Tell(client::NodesRequest(), 6).ok());
  EXPECT_TRUE(Tell(About<client::DeleteRequest>("here"), 7).ok());
  session_.reset();
  const Bytes data = {1};
  ASSERT_TRUE(node_.store().CreateAndSeal({Id("never"), data, {}}, node_.store().NewOwner()).ok());
  scheduler_.RunFor(base::Seconds(5));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(SessionWaitingTest, EventsThatACongestedClientMissedAreCountedAsSoonAsItTakesThem) {
  OpenAndGreet();
  Ask(client::SubscribeRequest(), 9);
  ASSERT_TRUE(Answered(9).ok());
  const Bytes data = {1};
  const auto seal = [&](const char* name) {
    ASSERT_TRUE(node_.store().CreateAndSeal({Id(name), data, {}}, node_.store().NewOwner()).ok());
    Settle();
  };
  congested_ = true;
  seal("a");
  seal("b");
  EXPECT_TRUE(sent_.empty());
  congested_ = false;
  Settle();
  ASSERT_EQ(sent_.size(), 1u);
  last_ = sent_[0].frame;
  EXPECT_EQ(Body<client::EventsNotification>().dropped, 2u);
  seal("c");
  ASSERT_EQ(sent_.size(), 2u);
  last_ = sent_[1].frame;
  const auto events = Body<client::EventsNotification>();
  EXPECT_EQ(events.dropped, 0u);
  ASSERT_EQ(events.events.size(), 1u);
  EXPECT_EQ(events.events[0].id, Id("c"));
}

}  // namespace
}  // namespace tokamak::daemon
