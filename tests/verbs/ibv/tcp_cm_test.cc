// Connections by hand over TCP, on loopback sockets and with queue pairs that only walk.
#include "lib/verbs/ibv/tcp_cm.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/verbs/ibv/socket_address.h"
#include "tests/verbs/ibv/fake_queue_pair.h"

namespace tokamak::verbs::ibv {
namespace {

using testing::ElementsAre;
using Kind = ConnectionEvent::Kind;
constexpr auto kEstablished = Kind::kEstablished;
constexpr auto kRejected = Kind::kRejected;
constexpr auto kUnreachable = Kind::kUnreachable;
constexpr auto kDisconnected = Kind::kDisconnected;

constexpr base::Duration kPatience = base::Seconds(20);

LocalPort PortAt(uint8_t last) {
  LocalPort port;
  port.link = LinkKind::kRoce;
  port.gid = Address::Parse("10.0.0.1")->ip;
  port.gid[15] = last;
  port.active_mtu = 1024;
  return port;
}

// One side: a manager of its own, a queue pair, and what it was told.
struct Side {
  Side(os::EpollLoop& loop, uint8_t index) : queue_pair(loop, 100u + index) {
    TcpCmOptions options;
    options.address = *Address::Parse("127.0.0.1");
    options.address.ip[15] = index;
    options.port = [this] { return port; };
    options.max_reads = 16;
    port = PortAt(index);
    address = options.address;
    manager = *TcpConnectionManager::Make(options);
  }

  ConnectionHandler Handler() {
    return [this](const ConnectionEvent& event) {
      events.push_back(event.kind);
      status = event.status;
      private_data.assign(event.private_data.begin(), event.private_data.end());
      path_mtu = event.path_mtu;
      if (on_event) on_event();
    };
  }
  bool Saw(Kind kind) const { return std::find(events.begin(), events.end(), kind) != events.end(); }

  LocalPort port;
  Address address;
  FakeQueuePair queue_pair;
  std::unique_ptr<TcpConnectionManager> manager;
  std::unique_ptr<Connection> connection;
  std::vector<Kind> events;
  absl::Status status;
  std::vector<uint8_t> private_data;
  uint32_t path_mtu = 0;
  std::function<void()> on_event;
};

class TcpCmTest : public testing::Test {
 protected:
  TcpCmTest() {
    auto made = passive_.manager->Listen(loop_, passive_.address, [this](std::unique_ptr<ConnectionRequest> request) {
      requests_.push_back(std::move(request));
    });
    EXPECT_TRUE(made.ok()) << made.status();
    listener_ = *std::move(made);
  }

  bool Drive(const std::function<bool()>& done) { return loop_.RunUntil(done, loop_.Now() + kPatience); }
  void LookOn(base::Duration time = base::Milliseconds(50)) {
    loop_.RunUntil([] { return false; }, loop_.Now() + time);
  }

  absl::Status Connect(Side& side, const ConnectOptions& options = {}) {
    auto made = side.manager->Connect(side.queue_pair, listener_->address(), options, side.Handler());
    if (made.ok()) side.connection = *std::move(made);
    return made.status();
  }
  std::unique_ptr<ConnectionRequest> AwaitRequest() {
    if (!Drive([this] { return !requests_.empty(); })) return nullptr;
    auto request = std::move(requests_.front());
    requests_.erase(requests_.begin());
    return request;
  }
  absl::Status Accept(ConnectionRequest& request, const ConnectOptions& options = {}) {
    auto made = request.Accept(passive_.queue_pair, options, passive_.Handler());
    if (made.ok()) passive_.connection = *std::move(made);
    return made.status();
  }
  void Establish() {
    ASSERT_TRUE(Connect(active_).ok());
    auto request = AwaitRequest();
    ASSERT_NE(request, nullptr);
    ASSERT_TRUE(Accept(*request).ok());
    ASSERT_TRUE(Drive([this] { return active_.Saw(kEstablished) && passive_.Saw(kEstablished); }));
  }

  // A socket that speaks to the listener by itself.
  os::FileDescriptor RawPeer() {
    const SocketAddress to = ToSocketAddress(listener_->address());
    os::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(socket.get(), to.get(), to.size), 0);
    return socket;
  }
  static bool IsClosed(int socket) {
    uint8_t byte;
    const ssize_t got = recv(socket, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }

  os::EpollLoop loop_;
  Side active_{loop_, 1}, passive_{loop_, 2};
  std::vector<std::unique_ptr<ConnectionRequest>> requests_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(TcpCmTest, BothSidesWalkToReadyToSendTowardsEachOther) {
  Establish();
  EXPECT_THAT(active_.events, ElementsAre(kEstablished));
  EXPECT_THAT(passive_.events, ElementsAre(kEstablished));
  EXPECT_EQ(active_.queue_pair.state(), QueuePairState::kReadyToSend);
  EXPECT_EQ(passive_.queue_pair.state(), QueuePairState::kReadyToSend);
  const auto& a = active_.queue_pair.steps;
  const auto& p = passive_.queue_pair.steps;
  ASSERT_EQ(a.size(), 2u);
  ASSERT_EQ(p.size(), 2u);
  EXPECT_EQ(a[0].attributes.dest_qp_num, 102u);
  EXPECT_EQ(p[0].attributes.dest_qp_num, 101u);
  EXPECT_EQ(a[0].attributes.rq_psn, p[1].attributes.sq_psn);
  EXPECT_EQ(p[0].attributes.rq_psn, a[1].attributes.sq_psn);
  EXPECT_EQ(a[0].attributes.ah_attr.grh.dgid.raw[15], 2);
  EXPECT_EQ(p[0].attributes.ah_attr.grh.dgid.raw[15], 1);
  EXPECT_EQ(active_.path_mtu, 1024u);
  EXPECT_EQ(passive_.path_mtu, 1024u);
  EXPECT_EQ(active_.connection->peer(), listener_->address());
  EXPECT_EQ(passive_.connection->peer().ip, active_.address.ip) << "a line starts from the device's own address";
}

TEST_F(TcpCmTest, ThePassiveSideIsReadyBeforeTheActiveSideHears) {
  ASSERT_TRUE(Connect(active_).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  QueuePairState seen = QueuePairState::kReset;
  active_.on_event = [&] { seen = passive_.queue_pair.state(); };
  ASSERT_TRUE(Accept(*request).ok());
  EXPECT_TRUE(passive_.events.empty()) << "no callback runs inside a call";
  ASSERT_TRUE(Drive([this] { return active_.Saw(kEstablished); }));
  EXPECT_EQ(seen, QueuePairState::kReadyToSend);
}

TEST_F(TcpCmTest, MtuAndReadsAreTheSmallerOfBothSides) {
  ConnectOptions ask, agree;
  active_.port.active_mtu = 4096;
  passive_.port.active_mtu = 2048;
  agree.max_path_mtu = 512;
  ask.reliability.reads_outstanding = 9;
  agree.reliability.reads_served = 4;
  ASSERT_TRUE(Connect(active_, ask).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(Accept(*request, agree).ok());
  ASSERT_TRUE(Drive([this] { return active_.Saw(kEstablished) && passive_.Saw(kEstablished); }));
  EXPECT_EQ(active_.path_mtu, 512u);
  EXPECT_EQ(passive_.path_mtu, 512u);
  EXPECT_EQ(active_.queue_pair.steps[0].attributes.path_mtu, IBV_MTU_512);
  EXPECT_EQ(passive_.queue_pair.steps[0].attributes.path_mtu, IBV_MTU_512);
  EXPECT_EQ(active_.queue_pair.steps[1].attributes.max_rd_atomic, 4);
  EXPECT_EQ(passive_.queue_pair.steps[0].attributes.max_dest_rd_atomic, 4);
}

TEST_F(TcpCmTest, PrivateDataTravelsBothWaysAndWithARejection) {
  const std::vector<uint8_t> question(kTcpCmPrivateData, 1), answer(3, 2);
  ConnectOptions ask, agree;
  ask.private_data = question;
  agree.private_data = answer;
  ASSERT_TRUE(Connect(active_, ask).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  EXPECT_THAT(request->private_data(), testing::ElementsAreArray(question));
  ASSERT_TRUE(Accept(*request, agree).ok());
  ASSERT_TRUE(Drive([this] { return active_.Saw(kEstablished); }));
  EXPECT_EQ(active_.private_data, answer);

  Side other(loop_, 3);
  ASSERT_TRUE(Connect(other, ask).ok());
  request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  request->Reject(answer);
  ASSERT_TRUE(Drive([&] { return !other.events.empty(); }));
  EXPECT_THAT(other.events, ElementsAre(kRejected));
  EXPECT_EQ(other.private_data, answer);
  EXPECT_EQ(other.queue_pair.state(), QueuePairState::kInit) << "good for another attempt";
}

TEST_F(TcpCmTest, DroppingARequestRejectsIt) {
  ASSERT_TRUE(Connect(active_).ok());
  AwaitRequest().reset();
  ASSERT_TRUE(Drive([this] { return !active_.events.empty(); }));
  EXPECT_THAT(active_.events, ElementsAre(kRejected));
}

TEST_F(TcpCmTest, WhereNobodyListensIsARejection) {
  const Address service = listener_->address();
  listener_.reset();
  auto made = active_.manager->Connect(active_.queue_pair, service, {}, active_.Handler());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(active_.events.empty());
  ASSERT_TRUE(Drive([this] { return !active_.events.empty(); }));
  EXPECT_THAT(active_.events, ElementsAre(kRejected));
}

TEST_F(TcpCmTest, WhoDoesNotAnswerIsUnreachableByTheDeadline) {
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

  // Too late: whatever is said now, this connection does not come up.
  if (Accept(*request).ok()) {
    ASSERT_TRUE(Drive([this] { return !passive_.events.empty(); }));
    EXPECT_FALSE(passive_.Saw(kEstablished));
    EXPECT_EQ(passive_.queue_pair.state(), QueuePairState::kError);
  }
}

// Whoever asked and was accepted may fall silent before it is ready.
TEST_F(TcpCmTest, AnAcceptedPeerThatIsNeverReadyIsUnreachableByTheDeadline) {
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

TEST_F(TcpCmTest, WhoeverLeavesTheOtherIsToldAndBothAreInError) {
  for (bool active_leaves : {true, false}) {
    SCOPED_TRACE(active_leaves);
    Side a(loop_, 4), b(loop_, 5);
    ASSERT_TRUE(Connect(a).ok());
    auto request = AwaitRequest();
    ASSERT_NE(request, nullptr);
    b.connection = *request->Accept(b.queue_pair, {}, b.Handler());
    ASSERT_TRUE(Drive([&] { return a.Saw(kEstablished) && b.Saw(kEstablished); }));
    Side& leaves = active_leaves ? a : b;
    Side& stays = active_leaves ? b : a;
    leaves.connection.reset();
    ASSERT_TRUE(Drive([&] { return stays.Saw(kDisconnected); }));
    EXPECT_EQ(leaves.queue_pair.state(), QueuePairState::kError);
    EXPECT_EQ(stays.queue_pair.state(), QueuePairState::kError);
    EXPECT_THAT(leaves.events, ElementsAre(kEstablished));
    EXPECT_THAT(stays.events, ElementsAre(kEstablished, kDisconnected));
  }
}

TEST_F(TcpCmTest, AConnectionMayBeDroppedInsideItsHandler) {
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

TEST_F(TcpCmTest, AnAttemptThatIsDroppedIsHeardOfNoMore) {
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

TEST_F(TcpCmTest, AQueuePairThatCannotBeWalkedEndsTheAttemptOnBothSides) {
  passive_.queue_pair.refuse_walk = absl::InternalError("the provider says no");
  ASSERT_TRUE(Connect(active_).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(absl::IsInternal(Accept(*request)));
  ASSERT_TRUE(Drive([this] { return !active_.events.empty(); }));
  EXPECT_THAT(active_.events, ElementsAre(kRejected));
  EXPECT_FALSE(passive_.queue_pair.held());

  Side other(loop_, 3);
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

TEST_F(TcpCmTest, SidesOfDifferentLinksAreNotConnected) {
  active_.port.link = LinkKind::kInfiniBand;
  active_.port.lid = 4;
  ASSERT_TRUE(Connect(active_).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(Accept(*request)));
  ASSERT_TRUE(Drive([this] { return active_.Saw(kRejected); }));
}

TEST_F(TcpCmTest, InfiniBandTellsItsLid) {
  for (Side* side : {&active_, &passive_}) {
    side->port.link = LinkKind::kInfiniBand;
    side->port.lid = side == &active_ ? 0x10 : 0x20;
    side->port.path_bits = 1;
  }
  Establish();
  EXPECT_EQ(active_.queue_pair.steps[0].attributes.ah_attr.dlid, 0x21);
  EXPECT_EQ(passive_.queue_pair.steps[0].attributes.ah_attr.dlid, 0x11);
}

TEST_F(TcpCmTest, IwarpIsRefused) {
  TcpCmOptions options;
  options.port = [] {
    LocalPort port;
    port.link = LinkKind::kIwarp;
    return port;
  };
  EXPECT_TRUE(absl::IsUnimplemented(TcpConnectionManager::Make(options).status()));
}

TEST_F(TcpCmTest, NoMoreThanSixtyFourRequestsWaitForAnAnswer) {
  constexpr size_t kCount = 70;
  std::vector<std::unique_ptr<Side>> sides;
  for (size_t i = 0; i < kCount; ++i) {
    sides.push_back(std::make_unique<Side>(loop_, 1));
    ASSERT_TRUE(Connect(*sides.back()).ok());
  }
  const auto rejected = [](const std::unique_ptr<Side>& side) { return side->Saw(kRejected); };
  EXPECT_TRUE(Drive([&] {
    return requests_.size() == kMaxUnanswered &&
           std::count_if(sides.begin(), sides.end(), rejected) == kCount - kMaxUnanswered;
  })) << requests_.size();
  requests_.pop_back();  // answered: there is room again
  Side late(loop_, 1);
  ASSERT_TRUE(Connect(late).ok());
  EXPECT_TRUE(Drive([&] { return requests_.size() == kMaxUnanswered; }));
}

TEST_F(TcpCmTest, WhoSaysNothingDoesNotKeepOthersOut) {
  std::vector<os::FileDescriptor> silent;
  for (size_t i = 0; i < kMaxHalfOpen + 3; ++i) {
    silent.push_back(RawPeer());
    LookOn(base::Milliseconds(1));  // the listener's own queue is no longer than this
  }
  // The last are closed at once, the others within their deadline; then there is room.
  const auto closed = [&] {
    return static_cast<size_t>(std::count_if(silent.begin(), silent.end(),
                                             [](const os::FileDescriptor& socket) { return IsClosed(socket.get()); }));
  };
  ASSERT_TRUE(Drive([&] { return closed() >= 3; }));
  EXPECT_EQ(closed(), 3u);
  ASSERT_TRUE(Drive([&] { return closed() == silent.size(); })) << closed();
  Establish();
}

TEST_F(TcpCmTest, NonsenseEndsALineAndNothingElse) {
  base::Random random(3);
  for (int round = 0; round < 50; ++round) {
    const os::FileDescriptor peer = RawPeer();
    std::vector<uint8_t> bytes(kTcpHelloSize);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
    if (round % 5 == 0) {  // well formed, but nobody begins with it
      TcpHello ready;
      ready.kind = TcpHello::Kind::kReady;
      const TcpHelloBytes encoded = EncodeTcpHello(ready);
      bytes.assign(encoded.begin(), encoded.end());
    }
    ASSERT_EQ(send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(Drive([&] { return IsClosed(peer.get()); }));
  }
  EXPECT_TRUE(requests_.empty());
  Establish();
}

TEST_F(TcpCmTest, AMessageThatComesInPiecesIsOne) {
  const os::FileDescriptor peer = RawPeer();
  TcpHello ask;
  ask.queue_pair_number = 9;
  const TcpHelloBytes bytes = EncodeTcpHello(ask);
  for (size_t i = 0; i < bytes.size(); i += 32) {
    EXPECT_TRUE(requests_.empty());
    ASSERT_EQ(send(peer.get(), bytes.data() + i, 32, 0), 32);
    LookOn(base::Milliseconds(5));
  }
  EXPECT_NE(AwaitRequest(), nullptr);
}

TEST_F(TcpCmTest, APeerThatGoesOnTalkingIsDisconnected) {
  const os::FileDescriptor peer = RawPeer();
  TcpHello hello;
  hello.queue_pair_number = 9;
  for (TcpHello::Kind kind : {TcpHello::Kind::kAsk, TcpHello::Kind::kReady, TcpHello::Kind::kReady}) {
    hello.kind = kind;
    const TcpHelloBytes bytes = EncodeTcpHello(hello);
    ASSERT_EQ(send(peer.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(Accept(*request).ok());
  ASSERT_TRUE(Drive([this] { return passive_.Saw(kDisconnected); }));
  EXPECT_THAT(passive_.events, ElementsAre(kEstablished, kDisconnected));
}

TEST_F(TcpCmTest, APortHasOneListenerAndIsFreeAfterIt) {
  const Address address = listener_->address();
  const auto listen = [&] {
    return passive_.manager->Listen(loop_, address, [](std::unique_ptr<ConnectionRequest>) {});
  };
  EXPECT_TRUE(absl::IsAlreadyExists(listen().status()));
  Establish();
  listener_.reset();
  EXPECT_TRUE(listen().ok());
  LookOn();
  EXPECT_THAT(active_.events, ElementsAre(kEstablished)) << "connections outlive their listener";
}

TEST_F(TcpCmTest, ARequestOutlivesItsListenerAndItsManager) {
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
