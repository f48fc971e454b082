// The life of a connection that is made over TCP: how it ends, and who hears of it.
#include "lib/verbs/ibv/tcp/tcp_connection.h"

#include <sys/socket.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/verbs/ibv/tcp/tcp_hello.h"
#include "tests/verbs/ibv/tcp/tcp_pair.h"

namespace tokamak::verbs::ibv {
namespace {

using testing::ElementsAre;
constexpr auto kEstablished = ConnectionEvent::Kind::kEstablished;
constexpr auto kRejected = ConnectionEvent::Kind::kRejected;
constexpr auto kUnreachable = ConnectionEvent::Kind::kUnreachable;
constexpr auto kDisconnected = ConnectionEvent::Kind::kDisconnected;

using TcpConnectionTest = TcpPair;

TEST_F(TcpConnectionTest, DroppingARequestRejectsIt) {
  ASSERT_TRUE(Connect(active_).ok());
  AwaitRequest().reset();
  ASSERT_TRUE(Drive([this] { return !active_.events.empty(); }));
  EXPECT_THAT(active_.events, ElementsAre(kRejected));
}

TEST_F(TcpConnectionTest, AMissingListenerIsARejection) {
  const Address service = listener_->address();
  listener_.reset();
  auto made = active_.manager->Connect(active_.queue_pair, service, {}, active_.Handler());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(active_.events.empty());
  ASSERT_TRUE(Drive([this] { return !active_.events.empty(); }));
  EXPECT_THAT(active_.events, ElementsAre(kRejected));
}

TEST_F(TcpConnectionTest, APeerThatDoesNotAnswerIsUnreachableByTheDeadline) {
  ConnectOptions options;
  options.deadline = base::Milliseconds(200);
  const base::Time start = loop_.Now();
  ASSERT_TRUE(Connect(active_, options).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(Drive([this] { return !active_.events.empty(); }));
  EXPECT_THAT(active_.events, ElementsAre(kUnreachable));
  EXPECT_GE((loop_.Now() - start).milliseconds(), 200);
  EXPECT_TRUE(absl::IsDeadlineExceeded(active_.status));

  // Too late: whatever it answers now, this connection does not come up.
  if (Accept(*request).ok()) {
    ASSERT_TRUE(Drive([this] { return !passive_.events.empty(); }));
    EXPECT_FALSE(passive_.Saw(kEstablished));
    EXPECT_EQ(passive_.queue_pair.state(), QueuePairState::kError);
  }
}

// An asker that was accepted may fall silent before it is ready.
TEST_F(TcpConnectionTest, AnAcceptedPeerThatIsNeverReadyIsUnreachableByTheDeadline) {
  const os::FileDescriptor peer = RawPeer();
  TcpHello ask;
  ask.queue_pair_number = 9;
  const TcpHelloBytes bytes = EncodeTcpHello(ask);
  ASSERT_EQ(send(peer.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  ConnectOptions options;
  options.deadline = base::Milliseconds(100);
  ASSERT_TRUE(Accept(*request, options).ok());
  ASSERT_TRUE(Drive([this] { return !passive_.events.empty(); }));
  EXPECT_THAT(passive_.events, ElementsAre(kUnreachable));
  EXPECT_EQ(passive_.queue_pair.state(), QueuePairState::kError);
  EXPECT_TRUE(passive_.queue_pair.held());
  passive_.connection.reset();
  EXPECT_FALSE(passive_.queue_pair.held());
}

TEST_F(TcpConnectionTest, ALeavingSideIsReportedToTheOtherAndBothAreInError) {
  for (bool active_leaves : {true, false}) {
    SCOPED_TRACE(active_leaves);
    TcpSide a(loop_, 4), b(loop_, 5);
    ASSERT_TRUE(Connect(a).ok());
    auto request = AwaitRequest();
    ASSERT_NE(request, nullptr);
    b.connection = *request->Accept(b.queue_pair, {}, b.Handler());
    ASSERT_TRUE(Drive([&] { return a.Saw(kEstablished) && b.Saw(kEstablished); }));
    TcpSide& leaves = active_leaves ? a : b;
    TcpSide& stays = active_leaves ? b : a;
    leaves.connection.reset();
    ASSERT_TRUE(Drive([&] { return stays.Saw(kDisconnected); }));
    EXPECT_EQ(leaves.queue_pair.state(), QueuePairState::kError);
    EXPECT_EQ(stays.queue_pair.state(), QueuePairState::kError);
    EXPECT_THAT(leaves.events, ElementsAre(kEstablished));
    EXPECT_THAT(stays.events, ElementsAre(kEstablished, kDisconnected));
  }
}

TEST_F(TcpConnectionTest, AConnectionMayBeDroppedInsideItsHandler) {
  active_.on_event = [this] { active_.connection.reset(); };
  passive_.on_event = [this] {
    if (passive_.Saw(kDisconnected)) passive_.connection.reset();
  };
  ASSERT_TRUE(Connect(active_).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(Accept(*request).ok());
  ASSERT_TRUE(Drive([this] { return passive_.Saw(kDisconnected); }));
  EXPECT_THAT(active_.events, ElementsAre(kEstablished));
  EXPECT_FALSE(active_.queue_pair.held());
  EXPECT_FALSE(passive_.queue_pair.held());
}

TEST_F(TcpConnectionTest, ADroppedAttemptReportsNothing) {
  ASSERT_TRUE(Connect(active_).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  active_.connection.reset();
  if (Accept(*request).ok()) {
    ASSERT_TRUE(Drive([this] { return !passive_.events.empty(); }));
    EXPECT_FALSE(passive_.Saw(kEstablished));
  }
  EXPECT_TRUE(active_.events.empty());
}

TEST_F(TcpConnectionTest, AQueuePairThatCannotBeWalkedEndsTheAttemptOnBothSides) {
  passive_.queue_pair.refuse_walk = absl::InternalError("the provider says no");
  ASSERT_TRUE(Connect(active_).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(absl::IsInternal(Accept(*request)));
  ASSERT_TRUE(Drive([this] { return !active_.events.empty(); }));
  EXPECT_THAT(active_.events, ElementsAre(kRejected));
  EXPECT_FALSE(passive_.queue_pair.held());

  TcpSide other(loop_, 3);
  passive_.queue_pair.refuse_walk = absl::OkStatus();
  other.queue_pair.refuse_walk = absl::InternalError("the provider says no");
  ASSERT_TRUE(Connect(other).ok());
  request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(Accept(*request).ok());
  ASSERT_TRUE(Drive([&] { return !other.events.empty() && !passive_.events.empty(); }));
  EXPECT_THAT(other.events, ElementsAre(kUnreachable));
  EXPECT_FALSE(passive_.Saw(kEstablished));
}

TEST_F(TcpConnectionTest, ARequestOutlivesItsListenerAndItsManager) {
  ASSERT_TRUE(Connect(active_).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  listener_.reset();
  passive_.manager.reset();
  ASSERT_TRUE(Accept(*request).ok());
  EXPECT_TRUE(Drive([this] { return active_.Saw(kEstablished) && passive_.Saw(kEstablished); }));
}

}  // namespace
}  // namespace tokamak::verbs::ibv
