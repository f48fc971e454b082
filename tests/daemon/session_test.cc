#include "lib/daemon/session.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "lib/client/frame.h"
#include "sim/sim_loop.h"
#include "tests/daemon/lonely_node.h"

namespace tokamak::daemon {
namespace {

using client::Header;
using Bytes = std::vector<uint8_t>;

constexpr uint64_t kTimeout = 1'000'000;  // microseconds

base::ObjectId Id(const std::string& name) { return base::ObjectId::FromName(name); }

class SessionTest : public testing::Test {
 protected:
  struct Sent {
    Bytes frame;
    Descriptors descriptors;
  };

  SessionTest() { Open(); }
  ~SessionTest() override {
    session_.reset();
    Settle();
    const absl::Status consistent = node_.store().CheckConsistency();
    EXPECT_TRUE(consistent.ok()) << consistent;
    EXPECT_EQ(node_.store().statistics().pins, 0u);
    EXPECT_EQ(node_.store().statistics().unsealed_objects, 0u);
    EXPECT_EQ(node_.store().statistics().waiting, 0u);
  }

  void Open() {
    session_ = std::make_unique<Session>(
        node_.context(),
        [this](Bytes frame, Descriptors descriptors) {
          sent_.push_back({std::move(frame), descriptors});
        },
        [this] { return congested_; });
  }

  // A new session that has said hello.
  void OpenAndGreet(client::Access access = client::Access::kReadAndCreate) {
    Open();
    client::HelloRequest hello;
    hello.access = access;
    Ask(hello);
    sent_.clear();
  }

  void Settle() { scheduler_.RunFor(base::Milliseconds(10)); }

  template <typename Request>
  absl::Status Tell(const Request& request, uint64_t id = 1) {
    return session_->Handle(client::Encode(id, request));
  }

  // Sends a request that keeps the protocol and lets a little time pass.
  template <typename Request>
  void Ask(const Request& request, uint64_t id = 1) {
    const absl::Status status = Tell(request, id);
    EXPECT_TRUE(status.ok()) << status;
    Settle();
  }

  // The one answer that came, to request `id`: its status.
  absl::Status Answered(uint64_t id = 1) {
    EXPECT_EQ(sent_.size(), 1u);
    if (sent_.empty()) return absl::InternalError("no answer");
    last_ = sent_.front().frame;
    sent_.clear();
    const auto header = client::DecodeHeader(last_);
    EXPECT_TRUE(header.ok());
    EXPECT_EQ(header->request_id, id);
    EXPECT_TRUE(header->kind & client::kReplyBit);
    return client::StatusOf(*header, last_);
  }

  template <typename Reply>
  Reply Body() {
    const auto reply = client::DecodeBody<Reply>(last_);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : Reply();
  }

  void Put(const std::string& name, const Bytes& data) {
    client::CreateAndSealRequest request;
    request.objects.push_back({Id(name), data, {}});
    Ask(request);
    EXPECT_TRUE(Answered().ok());
    EXPECT_EQ(Body<client::CreateAndSealReply>().outcomes.at(0).code, absl::StatusCode::kOk);
  }

  client::GetRequest GetOf(const std::vector<std::string>& names, uint64_t timeout = kTimeout) {
    client::GetRequest get;
    get.timeout_microseconds = timeout;
    for (const std::string& name : names) get.ids.push_back(Id(name));
    return get;
  }

  template <typename Request>
  Request About(const std::string& name) {
    Request request;
    request.id = Id(name);
    return request;
  }

  client::CreateRequest CreateOf(const std::string& name, uint64_t size) {
    client::CreateRequest create;
    create.id = Id(name);
    create.data_size = size;
    return create;
  }

  alignas(64) uint8_t arena_[256 * 1024] = {};
  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  LonelyNode node_{loop_, absl::MakeSpan(arena_)};
  bool congested_ = false;
  std::vector<Sent> sent_;
  Bytes last_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, HelloIsAnsweredWithTheArena) {
  Ask(client::HelloRequest());
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].descriptors, Descriptors::kReadAndCreate);
  ASSERT_TRUE(Answered().ok());
  const auto welcome = Body<client::WelcomeReply>();
  EXPECT_EQ(welcome.arena_size, sizeof arena_);
  EXPECT_EQ(welcome.capacity, node_.store().statistics().capacity_bytes);
  EXPECT_EQ(welcome.incarnation, 42u);
  EXPECT_EQ(welcome.node, "lonely");
}

TEST_F(SessionTest, AReaderGetsNoDescriptorToWrite) {
  client::HelloRequest hello;
  hello.access = client::Access::kRead;
  Ask(hello);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].descriptors, Descriptors::kRead);
}

TEST_F(SessionTest, HelloComesFirstAndOnce) {
  EXPECT_TRUE(absl::IsInvalidArgument(Tell(client::ListRequest())));
  EXPECT_TRUE(sent_.empty());
  OpenAndGreet();
  EXPECT_TRUE(absl::IsInvalidArgument(Tell(client::HelloRequest())));
}

TEST_F(SessionTest, AnotherVersionIsToldSoAndEnded) {
  Bytes frame = client::Encode(1, client::HelloRequest());
  ++frame[4];
  EXPECT_FALSE(session_->Handle(frame).ok());
  const absl::Status told = Answered();
  EXPECT_TRUE(absl::IsFailedPrecondition(told)) << told;
  EXPECT_NE(told.message().find("version"), std::string::npos);
}

TEST_F(SessionTest, AMalformedFrameEndsTheSession) {
  OpenAndGreet();
  const Bytes good = client::Encode(1, GetOf({"a"}));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(session_->Handle(Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size))).ok()) << size;
  }
  Header header;
  header.request_id = 1;
  header.kind = 999;
  EXPECT_FALSE(session_->Handle(client::Frame(header, {})).ok());
  header.kind = static_cast<uint16_t>(client::Kind::kEvents);
  EXPECT_FALSE(session_->Handle(client::Frame(header, {})).ok());
  EXPECT_TRUE(sent_.empty());
}

TEST_F(SessionTest, AReaderMayChangeNothing) {
  OpenAndGreet(client::Access::kRead);
  const auto expect_denied = [&] {
    const absl::Status status = Answered();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  };
  Ask(CreateOf("a", 10));
  expect_denied();
  Ask(client::CreateAndSealRequest());
  expect_denied();
  Ask(About<client::SealRequest>("a"));
  expect_denied();
  Ask(About<client::AbortRequest>("a"));
  expect_denied();
  Ask(About<client::DeleteRequest>("a"));
  expect_denied();
  Ask(client::EvictRequest());
  expect_denied();
  Ask(client::ListRequest());
  EXPECT_TRUE(Answered().ok());
}

TEST_F(SessionTest, AnObjectIsCreatedSealedFoundAndReleased) {
  OpenAndGreet();
  Ask(CreateOf("a", 100));
  ASSERT_TRUE(Answered().ok());
  EXPECT_EQ(Body<client::CreateReply>().location.data_size, 100u);
  Ask(About<client::SealRequest>("a"));
  ASSERT_TRUE(Answered().ok());
  Ask(About<client::ContainsRequest>("a"));
  ASSERT_TRUE(Answered().ok());
  EXPECT_TRUE(Body<client::ContainsReply>().here);
  Ask(GetOf({"a"}));
  ASSERT_TRUE(Answered().ok());
  EXPECT_EQ(Body<client::GetReply>().entries.at(0).location.data_size, 100u);
  EXPECT_EQ(node_.store().statistics().pins, 1u);
  client::ReleaseRequest release;
  release.ids = {Id("a")};
  Ask(release);
  EXPECT_TRUE(Answered().ok());
  EXPECT_EQ(node_.store().statistics().pins, 0u);
  Ask(release);
  EXPECT_TRUE(absl::IsFailedPrecondition(Answered()));
}

TEST_F(SessionTest, ARequestWithIdZeroIsNotAnswered) {
  OpenAndGreet();
  Ask(CreateOf("a", 100));
  ASSERT_TRUE(Answered().ok());
  Ask(About<client::AbortRequest>("a"), 0);
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(node_.store().statistics().unsealed_objects, 0u);
}

TEST_F(SessionTest, AGetWaitsForWhatIsSealedLater) {
  OpenAndGreet();
  Ask(GetOf({"late"}), 5);
  EXPECT_TRUE(sent_.empty());
  const Bytes data = {1, 2, 3};
  ASSERT_TRUE(node_.store().CreateAndSeal({Id("late"), data, {}}, store::Origin::kCreatedHere).ok());
  Settle();
  ASSERT_TRUE(Answered(5).ok());
  EXPECT_EQ(Body<client::GetReply>().entries.at(0).location.data_size, 3u);
}

TEST_F(SessionTest, AGetEndsAtItsTimeOut) {
  OpenAndGreet();
  Ask(GetOf({"never"}, 50'000));
  EXPECT_TRUE(sent_.empty());
  scheduler_.RunFor(base::Seconds(10));
  ASSERT_TRUE(Answered().ok());
  EXPECT_NE(Body<client::GetReply>().entries.at(0).outcome.code, absl::StatusCode::kOk);
}

TEST_F(SessionTest, RequestsThatWaitAreBounded) {
  OpenAndGreet();
  for (size_t i = 0; i < kMaxWaitingRequests; ++i) EXPECT_TRUE(Tell(GetOf({"never"}), i + 10).ok());
  EXPECT_TRUE(sent_.empty());
  EXPECT_TRUE(Tell(GetOf({"never"}), 7).ok());
  const absl::Status refused = Answered(7);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
}

TEST_F(SessionTest, ObjectsThatAreWaitedForAreBounded) {
  OpenAndGreet();
  client::GetRequest get = GetOf({"never"});
  get.ids.assign(client::kMaxIds, Id("never"));
  for (size_t i = 0; i < kMaxWaitingIds / client::kMaxIds; ++i) EXPECT_TRUE(Tell(get, i + 10).ok());
  EXPECT_TRUE(sent_.empty());
  EXPECT_TRUE(Tell(GetOf({"never"}), 7).ok());
  const absl::Status refused = Answered(7);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
}

TEST_F(SessionTest, WhatWaitsEndsWithTheSessionAndIsNotAnswered) {
  OpenAndGreet();
  Put("here", {1});
  Ask(GetOf({"here", "never"}), 2);
  client::WaitRequest wait;
  wait.timeout_microseconds = kTimeout;
  wait.count = 1;
  wait.ids = {Id("never")};
  Ask(wait, 3);
  wait.scope = client::Scope::kAnywhere;
  Ask(wait, 4);
  EXPECT_TRUE(Tell(About<client::StatRequest>("here"), 5).ok());
  EXPECT_TRUE(Tell(client::NodesRequest(), 6).ok());
  EXPECT_TRUE(Tell(About<client::DeleteRequest>("here"), 7).ok());
  session_.reset();
  const Bytes data = {1};
  ASSERT_TRUE(node_.store().CreateAndSeal({Id("never"), data, {}}, store::Origin::kCreatedHere).ok());
  scheduler_.RunFor(base::Seconds(5));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(SessionTest, PinsAndUnsealedObjectsGoBackWithTheSession) {
  OpenAndGreet();
  Put("kept", {1, 2});
  Ask(GetOf({"kept", "kept"}));
  ASSERT_TRUE(Answered().ok());
  Ask(CreateOf("half", 1000));
  ASSERT_TRUE(Answered().ok());
  EXPECT_EQ(node_.store().statistics().pins, 2u);
  EXPECT_EQ(node_.store().statistics().unsealed_objects, 1u);
  session_.reset();
  EXPECT_EQ(node_.store().statistics().pins, 0u);
  EXPECT_EQ(node_.store().statistics().unsealed_objects, 0u);
  EXPECT_TRUE(node_.store().Contains(Id("kept")));
}

TEST_F(SessionTest, OneSessionCannotSealOrReleaseForAnother) {
  OpenAndGreet();
  Ask(CreateOf("mine", 10));
  ASSERT_TRUE(Answered().ok());
  const std::unique_ptr<Session> first = std::move(session_);
  OpenAndGreet();
  Ask(About<client::SealRequest>("mine"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Answered()));
  Ask(About<client::AbortRequest>("mine"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Answered()));
  EXPECT_TRUE(node_.store().Stat(Id("mine")).ok());
}

TEST_F(SessionTest, StatSaysWhoHolds) {
  OpenAndGreet();
  Put("a", {1, 2, 3});
  Settle();
  Ask(About<client::StatRequest>("a"));
  ASSERT_TRUE(Answered().ok());
  const auto stat = Body<client::StatReply>();
  EXPECT_TRUE(stat.here);
  EXPECT_TRUE(stat.located);
  EXPECT_EQ(stat.holders, std::vector<std::string>{"lonely"});
  EXPECT_EQ(stat.object.data_size, 3u);
  Ask(About<client::StatRequest>("nobody's"));
  EXPECT_TRUE(absl::IsNotFound(Answered()));
}

TEST_F(SessionTest, DeleteTakesTheObjectAway) {
  OpenAndGreet();
  Put("a", {1});
  Ask(About<client::DeleteRequest>("a"));
  EXPECT_TRUE(Answered().ok());
  EXPECT_FALSE(node_.store().Contains(Id("a")));
  Ask(About<client::DeleteRequest>("a"));
  EXPECT_TRUE(absl::IsNotFound(Answered()));
}

TEST_F(SessionTest, ListGoesOnWhereItEnded) {
  OpenAndGreet();
  for (const char* name : {"a", "b", "c"}) Put(name, {1});
  client::ListRequest list;
  list.limit = 2;
  Ask(list);
  ASSERT_TRUE(Answered().ok());
  const auto first = Body<client::ListReply>();
  ASSERT_EQ(first.objects.size(), 2u);
  EXPECT_TRUE(first.more);
  list.continued = true;
  list.after = first.objects.back().id;
  Ask(list);
  ASSERT_TRUE(Answered().ok());
  const auto second = Body<client::ListReply>();
  EXPECT_EQ(second.objects.size(), 1u);
  EXPECT_FALSE(second.more);
}

TEST_F(SessionTest, WaitAnywhereCountsWhatIsHere) {
  OpenAndGreet();
  Put("a", {1});
  client::WaitRequest wait;
  wait.timeout_microseconds = 100'000;
  wait.scope = client::Scope::kAnywhere;
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

TEST_F(SessionTest, WaitAnywhereForNothingIsAnsweredAtOnce) {
  OpenAndGreet();
  client::WaitRequest wait;
  wait.scope = client::Scope::kAnywhere;
  Ask(wait);
  EXPECT_TRUE(Answered().ok());
  wait.timeout_microseconds = kTimeout;
  wait.ids = {Id("never")};
  Ask(wait);
  EXPECT_TRUE(Answered().ok());
}

TEST_F(SessionTest, EventsThatACongestedClientMissedAreCountedInTheNextOnes) {
  OpenAndGreet();
  Ask(client::SubscribeRequest(), 9);
  ASSERT_TRUE(Answered(9).ok());
  const Bytes data = {1};
  const auto seal = [&](const char* name) {
    ASSERT_TRUE(node_.store().CreateAndSeal({Id(name), data, {}}, store::Origin::kCreatedHere).ok());
    Settle();
  };
  congested_ = true;
  seal("a");
  seal("b");
  EXPECT_TRUE(sent_.empty());
  congested_ = false;
  seal("c");
  ASSERT_EQ(sent_.size(), 1u);
  last_ = sent_[0].frame;
  const auto events = Body<client::EventsNotification>();
  EXPECT_EQ(events.dropped, 2u);
  ASSERT_EQ(events.events.size(), 1u);
  EXPECT_EQ(events.events[0].id, Id("c"));
}

TEST_F(SessionTest, HashEvictNodesAndNumbersAreAnswered) {
  OpenAndGreet();
  Put("a", {1, 2, 3});
  Ask(About<client::HashRequest>("a"));
  EXPECT_TRUE(Answered().ok());
  EXPECT_NE(Body<client::HashReply>().hash, 0u);
  Ask(About<client::HashRequest>("nobody's"));
  EXPECT_TRUE(absl::IsNotFound(Answered()));
  Ask(About<client::TouchRequest>("a"));
  EXPECT_TRUE(Answered().ok());
  Ask(client::NodesRequest());
  ASSERT_TRUE(Answered().ok());
  const auto nodes = Body<client::NodesReply>().nodes;
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].name, "lonely");
  EXPECT_TRUE(nodes[0].is_this);
  Ask(client::NodeStatsRequest());
  ASSERT_TRUE(Answered().ok());
  EXPECT_EQ(Body<client::NodeStatsReply>().numbers.back().name, "a_number_of_the_device");
  client::EvictRequest evict;
  evict.bytes = 1;
  Ask(evict);
  ASSERT_TRUE(Answered().ok());
  EXPECT_EQ(Body<client::EvictReply>().objects, 1u);
}

}  // namespace
}  // namespace tokamak::daemon
