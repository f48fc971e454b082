// A listener finds out the way to who asks before it presents the request, an asker the way to who
// accepted it; both go on with others meanwhile.
#include "lib/verbs/ibv/tcp/route_searches.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/verbs/ibv/tcp/tcp_pair.h"

namespace tokamak::verbs::ibv {
namespace {

constexpr auto kRouteEstablished = ConnectionEvent::Kind::kEstablished;
constexpr auto kRouteUnreachable = ConnectionEvent::Kind::kUnreachable;
constexpr auto kRouteRejected = ConnectionEvent::Kind::kRejected;

// Peers differ in the last byte of their GID: the first side of a pair is 1.
class RouteSearchesTest : public TcpPair {
 protected:
  // Listens as somebody who finds ways like this, in place of who finds none.
  void ListenWith(FindRoute find) {
    door_ = std::make_unique<TcpSide>(loop_, 9, std::move(find));
    auto made = door_->manager->Listen(loop_, door_->address, [this](std::unique_ptr<ConnectionRequest> request) {
      requests_.push_back(std::move(request));
    });
    ASSERT_TRUE(made.ok()) << made.status();
    listener_ = *std::move(made);
  }

  // Another thread sets it, which does not wake the loop.
  bool AwaitSet(const std::atomic<bool>& flag) {
    base::Timer tick;
    std::function<void()> look = [&] { tick = loop_.RunAfter(base::Milliseconds(1), look); };
    look();
    return Drive([&] { return flag.load(); });
  }

  std::unique_ptr<TcpSide> door_;
};

TEST_F(RouteSearchesTest, OthersArePresentedDuringARouteSearch) {
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  std::atomic<bool> asked{false};
  ListenWith([&, answered](const PeerPort& peer) {
    if (peer.gid[15] != 1) return absl::OkStatus();
    asked = true;
    answered.wait();
    return absl::OkStatus();
  });
  ASSERT_TRUE(Connect(active_).ok());
  ASSERT_TRUE(AwaitSet(asked));
  TcpSide other(loop_, 3);
  ASSERT_TRUE(Connect(other).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->peer().ip, other.address.ip);
  EXPECT_TRUE(requests_.empty());
  answer.set_value();
  request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->peer().ip, active_.address.ip);
  ASSERT_TRUE(Accept(*request).ok());
  EXPECT_TRUE(Drive([this] { return active_.Saw(ConnectionEvent::Kind::kEstablished); }));
}

TEST_F(RouteSearchesTest, AnUnreachableAskerIsRejectedUnseen) {
  ListenWith([](const PeerPort&) { return absl::UnavailableError("nobody answers"); });
  ASSERT_TRUE(Connect(active_).ok());
  EXPECT_TRUE(Drive([this] { return active_.Saw(kRouteRejected); }));
  EXPECT_TRUE(requests_.empty());
}

TEST_F(RouteSearchesTest, BeyondTheBoundPeersWaitForTheirTurn) {
  constexpr size_t kCount = kMaxUnanswered;  // of one address, and all are presented in the end
  static_assert(kCount > RouteSearches::kMaxSearches);
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  std::atomic<size_t> begun{0};
  std::atomic<bool> full{false};
  ListenWith([&, answered](const PeerPort&) {
    if (++begun == RouteSearches::kMaxSearches) full = true;
    answered.wait();
    return absl::OkStatus();
  });
  std::vector<std::unique_ptr<TcpSide>> sides;
  for (size_t i = 0; i < kCount; ++i) {
    sides.push_back(std::make_unique<TcpSide>(loop_, 1));
    ASSERT_TRUE(Connect(*sides.back()).ok());
  }
  ASSERT_TRUE(AwaitSet(full));
  LookOn();
  EXPECT_EQ(begun, RouteSearches::kMaxSearches);
  answer.set_value();
  EXPECT_TRUE(Drive([&] { return requests_.size() == kCount; })) << requests_.size();
}

TEST_F(RouteSearchesTest, AnAskerNotFoundByTheDeadlineIsDisconnected) {
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  ListenWith([answered](const PeerPort&) {
    answered.wait();
    return absl::OkStatus();
  });
  ConnectOptions options;
  options.deadline = kAskDeadline * 2;
  ASSERT_TRUE(Connect(active_, options).ok());
  EXPECT_TRUE(Drive([this] { return active_.Saw(kRouteRejected); }));
  answer.set_value();
  LookOn();
  EXPECT_TRUE(requests_.empty());
}

TEST_F(RouteSearchesTest, AListenerThatIsDroppedMeanwhileHearsNothing) {
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  std::atomic<bool> asked{false};
  ListenWith([&, answered](const PeerPort&) {
    asked = true;
    answered.wait();
    return absl::OkStatus();
  });
  ASSERT_TRUE(Connect(active_).ok());
  ASSERT_TRUE(AwaitSet(asked));
  listener_.reset();
  answer.set_value();
  EXPECT_TRUE(Drive([this] { return active_.Saw(kRouteRejected); })) << "its line was closed";
  door_.reset();  // waits for the search
  LookOn();
  EXPECT_TRUE(requests_.empty());
}

TEST_F(RouteSearchesTest, AnAskerSearchesTheRouteToItsAccepterAndGoesOnWithOthers) {
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  std::atomic<bool> asked{false};
  TcpSide asker(loop_, 4, [&, answered](const PeerPort& peer) {
    EXPECT_EQ(peer.gid[15], 2);
    asked = true;
    answered.wait();
    return absl::OkStatus();
  });
  TcpSide accepter(loop_, 5);
  ASSERT_TRUE(Connect(asker).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  EXPECT_FALSE(asked);
  accepter.connection = *request->Accept(accepter.queue_pair, {}, accepter.Handler());
  ASSERT_TRUE(AwaitSet(asked));
  Establish();
  EXPECT_TRUE(asker.events.empty());
  EXPECT_EQ(asker.queue_pair.state(), QueuePairState::kInit);
  answer.set_value();
  EXPECT_TRUE(Drive([&] { return asker.Saw(kRouteEstablished) && accepter.Saw(kRouteEstablished); }));
}

TEST_F(RouteSearchesTest, AnAccepterWithoutARouteIsUnreachable) {
  TcpSide asker(loop_, 4, [](const PeerPort&) { return absl::UnavailableError("nobody answers"); });
  ASSERT_TRUE(Connect(asker).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(Accept(*request).ok());
  ASSERT_TRUE(Drive([&] { return !asker.events.empty() && !passive_.events.empty(); }));
  EXPECT_TRUE(asker.Saw(kRouteUnreachable));
  EXPECT_FALSE(passive_.Saw(kRouteEstablished));
  EXPECT_EQ(asker.queue_pair.state(), QueuePairState::kInit) << "good for another attempt";
}

TEST_F(RouteSearchesTest, AnAskerThatSearchesARouteMayBeDroppedOrEndByItsDeadline) {
  for (bool dropped : {true, false}) {
    SCOPED_TRACE(dropped);
    std::promise<void> answer;
    const std::shared_future<void> answered = answer.get_future().share();
    std::atomic<bool> asked{false};
    TcpSide asker(loop_, 4, [&, answered](const PeerPort&) {
      asked = true;
      answered.wait();
      return absl::OkStatus();
    });
    TcpSide accepter(loop_, 5);
    ConnectOptions options;
    options.deadline = base::Milliseconds(dropped ? 20'000 : 300);
    ASSERT_TRUE(Connect(asker, options).ok());
    auto request = AwaitRequest();
    ASSERT_NE(request, nullptr);
    accepter.connection = *request->Accept(accepter.queue_pair, {}, accepter.Handler());
    ASSERT_TRUE(AwaitSet(asked));
    if (dropped) asker.connection.reset();
    ASSERT_TRUE(Drive([&] { return !accepter.events.empty(); }));
    EXPECT_FALSE(accepter.Saw(kRouteEstablished));
    EXPECT_EQ(asker.events.size(), dropped ? 0u : 1u);
    answer.set_value();
    LookOn();
    EXPECT_FALSE(asker.Saw(kRouteEstablished));
  }
}

TEST_F(RouteSearchesTest, AnAskerWaitsForItsTurnToSearch) {
  constexpr size_t kCount = RouteSearches::kMaxSearches + 1;
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  std::atomic<size_t> begun{0};
  std::atomic<bool> full{false};
  TcpSide door(loop_, 9, [&, answered](const PeerPort&) {
    if (++begun == RouteSearches::kMaxSearches) full = true;
    answered.wait();
    return absl::OkStatus();
  });
  std::vector<std::unique_ptr<TcpSide>> askers, accepters;  // askers: with the door's manager
  for (size_t i = 0; i < kCount; ++i) {
    askers.push_back(std::make_unique<TcpSide>(loop_, 20 + i));
    accepters.push_back(std::make_unique<TcpSide>(loop_, 60 + i));
    TcpSide& asker = *askers.back();
    asker.connection =
        *door.manager->Connect(asker.queue_pair, listener_->address(), ConnectOptions(), asker.Handler());
    auto request = AwaitRequest();
    ASSERT_NE(request, nullptr);
    TcpSide& accepter = *accepters.back();
    accepter.connection = *request->Accept(accepter.queue_pair, ConnectOptions(), accepter.Handler());
  }
  ASSERT_TRUE(AwaitSet(full));
  LookOn();
  EXPECT_EQ(begun, RouteSearches::kMaxSearches);
  answer.set_value();
  EXPECT_TRUE(Drive([&] {
    return std::all_of(askers.begin(), askers.end(), [](const auto& asker) { return asker->Saw(kRouteEstablished); });
  }));
}

}  // namespace
}  // namespace tokamak::verbs::ibv
