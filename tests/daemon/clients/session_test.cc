// A session's immediate answers, the resources that it returns, and the clients that it ends.
#include "lib/daemon/clients/session.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "tests/daemon/clients/one_session.h"

namespace tokamak::daemon {
namespace {

using SessionTest = OneSession;

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
  hello.access = Access::kRead;
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

TEST_F(SessionTest, AClientOfAnotherVersionIsInformedAndEnded) {
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
  client::Header header;
  header.request_id = 1;
  header.kind = 999;
  EXPECT_FALSE(session_->Handle(client::Frame(header, {})).ok());
  header.kind = static_cast<uint16_t>(client::Kind::kEvents);
  EXPECT_FALSE(session_->Handle(client::Frame(header, {})).ok());
  EXPECT_TRUE(sent_.empty());
}

TEST_F(SessionTest, AReaderMayChangeNothing) {
  OpenAndGreet(Access::kRead);
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
  Ask(About<client::UnpinRequest>("a"));
  expect_denied();
  client::PrefetchRequest pin;
  pin.pin = true;
  Ask(pin);
  expect_denied();
  Ask(client::PushRequest());
  expect_denied();
  Ask(client::PrefetchRequest());
  EXPECT_TRUE(Answered().ok());
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

TEST_F(SessionTest, NamesAreKeptListedAndReported) {
  OpenAndGreet();
  Ask(client::SubscribeRequest(), 7);
  sent_.clear();
  client::CreateAndSealRequest small;
  small.objects.push_back({Id("small"), {}, {}, "small"});
  small.objects.push_back({Id("unnamed"), {}, {}});
  Ask(small);
  const auto events = client::DecodeBody<client::EventsNotification>(sent_.back().frame);
  ASSERT_TRUE(events.ok() && events->events.size() == 2u) << events.status();
  EXPECT_EQ(events->events[0].name, "small");
  EXPECT_EQ(events->events[1].name, "");
  sent_.clear();
  for (const bool confirmed : {false, true}) {
    client::CreateRequest create = CreateOf(confirmed ? "confirmed" : "large", 100);
    create.name = confirmed ? "confirmed" : "large";
    create.confirmed = confirmed;
    Ask(create);
    EXPECT_TRUE(Answered().ok());
    Ask(About<client::StatRequest>(create.name));
    ASSERT_TRUE(Answered().ok());
    EXPECT_EQ(Body<client::StatReply>().object.name, create.name);
  }
  Ask(client::ListRequest());
  ASSERT_TRUE(Answered().ok());
  std::set<std::string> names;
  for (const client::ObjectEntry& object : Body<client::ListReply>().objects) names.insert(object.name);
  EXPECT_EQ(names, (std::set<std::string>{"", "confirmed", "large", "small"}));
}

TEST_F(SessionTest, ANameThatIsNotTheIdsIsRefusedAndNothingIsKept) {
  OpenAndGreet();
  client::CreateRequest create = CreateOf("a", 100);
  create.name = "b";
  Ask(create);
  EXPECT_TRUE(absl::IsInvalidArgument(Answered()));
  create = CreateOf("a\n", 100);
  create.name = "a\n";
  create.confirmed = true;
  Ask(create);
  EXPECT_TRUE(absl::IsInvalidArgument(Answered()));
  client::CreateAndSealRequest small;
  small.objects.push_back({Id("a"), {}, {}, "a"});
  small.objects.push_back({Id("b"), {}, {}, "c"});
  for (const bool together : {false, true}) {
    small.together = together;
    Ask(small);
    const absl::Status refused = Answered();
    EXPECT_EQ(refused.message(), "the name 'c' is not that of object " + Id("b").ToHex() +
                                     ": make the id of it, which is " + Id("c").ToHex() +
                                     ", or put the object without it");
  }
  EXPECT_TRUE(node_.store().List(1).empty());
}

TEST_F(SessionTest, ARequestWithIdZeroIsNotAnswered) {
  OpenAndGreet();
  Ask(CreateOf("a", 100));
  ASSERT_TRUE(Answered().ok());
  Ask(About<client::AbortRequest>("a"), 0);
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(node_.store().statistics().unsealed_objects, 0u);
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

TEST_F(SessionTest, StatNamesTheHolders) {
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
  scheduler_.RunFor(base::Seconds(10));  // the directory's time to learn
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

TEST_F(SessionTest, ABatchAppearsTogetherOrNotAtAll) {
  OpenAndGreet();
  Put("b", {1});
  client::CreateAndSealRequest request;
  const Bytes data = {1, 2, 3};
  request.objects = {{Id("a"), data, {}}, {Id("b"), data, {}}};
  request.together = true;
  Ask(request);
  EXPECT_TRUE(absl::IsAlreadyExists(Answered()));
  EXPECT_FALSE(node_.store().Contains(Id("a")));
  request.objects[1].id = Id("c");
  request.confirmed = true;
  Ask(request);
  EXPECT_TRUE(absl::IsInvalidArgument(Answered()));
  request.confirmed = false;
  Ask(request);
  EXPECT_TRUE(Answered().ok());
  EXPECT_EQ(Body<client::CreateAndSealReply>().outcomes.size(), 2u);
  EXPECT_TRUE(node_.store().Contains(Id("a")) && node_.store().Contains(Id("c")));
}

TEST_F(SessionTest, PrefetchedObjectsAreUnpinnedAndPinnedOnesOutliveTheSession) {
  OpenAndGreet();
  Put("a", {1, 2, 3});
  client::PrefetchRequest prefetch;
  prefetch.ids = {Id("a"), Id("nowhere")};
  Ask(prefetch);
  ASSERT_TRUE(Answered().ok());
  auto outcomes = Body<client::PrefetchReply>().outcomes;
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].code, absl::StatusCode::kOk);
  EXPECT_EQ(outcomes[1].code, absl::StatusCode::kNotFound);
  EXPECT_EQ(node_.store().statistics().pins, 0u);

  prefetch.pin = true;
  Ask(prefetch);
  ASSERT_TRUE(Answered().ok());
  Ask(About<client::StatRequest>("a"));
  ASSERT_TRUE(Answered().ok());
  EXPECT_TRUE(Body<client::StatReply>().object.pinned_here);
  OpenAndGreet();
  EXPECT_EQ(node_.store().Evict(SIZE_MAX).objects, 0u);
  Ask(About<client::UnpinRequest>("a"));
  EXPECT_TRUE(Answered().ok());
  EXPECT_EQ(node_.store().Evict(SIZE_MAX).objects, 1u);
  Ask(About<client::UnpinRequest>("a"));
  EXPECT_TRUE(absl::IsNotFound(Answered()));
}

TEST_F(SessionTest, APrefetchEndsWithItsSession) {
  OpenAndGreet();
  client::PrefetchRequest prefetch;
  prefetch.ids = {Id("later")};
  prefetch.timeout_microseconds = kTimeout;
  Ask(prefetch);
  EXPECT_TRUE(sent_.empty());
  Open();
  Settle();
  EXPECT_EQ(node_.store().statistics().waiting, 0u);
}

TEST_F(SessionTest, HashEvictNodesAndNumbersAreAnswered) {
  OpenAndGreet();
  Put("a", {1, 2, 3});
  Ask(About<client::HashRequest>("a"));
  EXPECT_TRUE(Answered().ok());
  EXPECT_NE(Body<client::HashReply>().hash, 0u);
  Ask(About<client::ProgressRequest>("a"));
  EXPECT_TRUE(absl::IsNotFound(Answered())) << "it is here";
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
  std::map<std::string, uint64_t> numbers;
  for (const client::NumberEntry& number : Body<client::NodeStatsReply>().numbers) numbers[number.name] = number.value;
  EXPECT_EQ(numbers["a_number_of_the_device"], 7u);
  EXPECT_EQ(numbers["store_sealed_objects"], 1u);
  EXPECT_EQ(numbers.count("store_pinned_bytes{pid 1 test}"), 1u);
  Ask(client::ClusterRequest());
  ASSERT_TRUE(Answered().ok());
  const auto cluster = Body<client::ClusterReply>();
  EXPECT_TRUE(cluster.located && !cluster.more);
  ASSERT_EQ(cluster.nodes.size(), 1u);
  EXPECT_EQ(cluster.nodes[0].node.name, "lonely");
  EXPECT_EQ(cluster.nodes[0].state, client::NodeState::kAlive);
  client::EvictRequest evict;
  evict.bytes = 1;
  store::Store& store = node_.store();
  const store::Owner who = store.NewOwner();
  ASSERT_TRUE(store.CreateCopy({Id("copy"), base::Generation{7}}, 10, 0, who).ok());
  ASSERT_TRUE(store.Seal(Id("copy"), who).ok());
  Ask(evict);
  ASSERT_TRUE(Answered().ok());
  EXPECT_EQ(Body<client::EvictReply>().objects, 1u);
}

TEST_F(SessionTest, ALargeClusterIsListedInPages) {
  OpenAndGreet();
  std::vector<base::Pending> joins;
  for (size_t i = 0; i < client::kMaxViewed + 10; ++i) {
    directory::JoinRequest join;
    join.node = {absl::StrFormat("n%03d", i), 1, {"10.0.0.1:7000"}, "soft", 0};
    join.lease = base::Seconds(100);
    joins.push_back(node_.directory().Join(join, base::Seconds(1), [](const auto&) {}));
  }
  client::ClusterRequest request;
  Ask(request);
  ASSERT_TRUE(Answered().ok());
  const auto first = Body<client::ClusterReply>();
  EXPECT_EQ(first.nodes.size(), client::kMaxViewed);
  EXPECT_EQ(first.nodes[0].node.name, "lonely");
  EXPECT_TRUE(first.more);
  request.after = first.nodes.back().node.name;
  Ask(request);
  ASSERT_TRUE(Answered().ok());
  const auto rest = Body<client::ClusterReply>();
  EXPECT_EQ(rest.nodes.size(), 11u);
  EXPECT_GT(rest.nodes[0].node.name, request.after);
  EXPECT_FALSE(rest.more);
}

}  // namespace
}  // namespace tokamak::daemon
