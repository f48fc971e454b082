// A listener's endurance: many peers, silent ones and those that send malformed messages.
#include "lib/verbs/ibv/tcp/tcp_listener.h"

#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/verbs/ibv/tcp/tcp_hello.h"
#include "tests/verbs/ibv/tcp/tcp_pair.h"

namespace tokamak::verbs::ibv {
namespace {

using testing::ElementsAre;
constexpr auto kListenerEstablished = ConnectionEvent::Kind::kEstablished;
constexpr auto kListenerRejected = ConnectionEvent::Kind::kRejected;
constexpr auto kListenerDisconnected = ConnectionEvent::Kind::kDisconnected;

class TcpListenerTest : public TcpPair {
 protected:
  static constexpr size_t kHosts = 5;  // with room for kMaxHalfOpen together

  static size_t Closed(const std::vector<os::FileDescriptor>& peers) {
    return static_cast<size_t>(std::count_if(peers.begin(), peers.end(),
                                             [](const os::FileDescriptor& socket) { return IsClosed(socket.get()); }));
  }
};

TEST_F(TcpListenerTest, NoMoreThanSixtyFourRequestsWaitForAnAnswer) {
  constexpr size_t kCount = 70;
  std::vector<std::unique_ptr<TcpSide>> sides;
  for (size_t i = 0; i < kCount; ++i) {
    sides.push_back(std::make_unique<TcpSide>(loop_, 1));
    ASSERT_TRUE(Connect(*sides.back()).ok());
  }
  const auto rejected = [](const std::unique_ptr<TcpSide>& side) { return side->Saw(kListenerRejected); };
  EXPECT_TRUE(Drive([&] {
    return requests_.size() == kMaxUnanswered &&
           std::count_if(sides.begin(), sides.end(), rejected) == kCount - kMaxUnanswered;
  })) << requests_.size();
  requests_.pop_back();  // answered: there is room again
  TcpSide late(loop_, 1);
  ASSERT_TRUE(Connect(late).ok());
  EXPECT_TRUE(Drive([&] { return requests_.size() == kMaxUnanswered; }));
}

TEST_F(TcpListenerTest, ASilentPeerDoesNotKeepOthersOut) {
  std::vector<os::FileDescriptor> silent;
  for (size_t i = 0; i < kMaxHalfOpen + 3; ++i) {
    silent.push_back(RawPeer(static_cast<uint8_t>(1 + i % kHosts)));
    LookOn(base::Milliseconds(1));  // the listener's own queue is no longer than this
  }
  // The last are closed at once, the others within their deadline; then there is room.
  ASSERT_TRUE(Drive([&] { return Closed(silent) >= 3; }));
  EXPECT_EQ(Closed(silent), 3u);
  ASSERT_TRUE(Drive([&] { return Closed(silent) == silent.size(); })) << Closed(silent);
  Establish();
}

TEST_F(TcpListenerTest, OneAddressDoesNotKeepOthersOut) {
  std::vector<os::FileDescriptor> silent;
  for (size_t i = 0; i < kMaxHalfOpen + 3; ++i) {
    silent.push_back(RawPeer(9));
    LookOn(base::Milliseconds(1));
  }
  Establish();  // from another
  EXPECT_EQ(Closed(silent), silent.size() - kMaxHalfOpenOfOne);
}

TEST_F(TcpListenerTest, ALineThatEndsGivesItsAddressRoom) {
  std::vector<os::FileDescriptor> silent;
  for (size_t i = 0; i < kMaxHalfOpenOfOne; ++i) silent.push_back(RawPeer());
  LookOn();
  ASSERT_EQ(Closed(silent), 0u);
  silent.pop_back();
  LookOn();
  Establish();
  EXPECT_EQ(Closed(silent), 0u);
}

TEST_F(TcpListenerTest, MalformedBytesEndOnlyTheirLine) {
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

TEST_F(TcpListenerTest, AMessageThatComesInPiecesIsOne) {
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

TEST_F(TcpListenerTest, APeerThatGoesOnTalkingIsDisconnected) {
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
  ASSERT_TRUE(Drive([this] { return passive_.Saw(kListenerDisconnected); }));
  EXPECT_THAT(passive_.events, ElementsAre(kListenerEstablished, kListenerDisconnected));
}

TEST_F(TcpListenerTest, APortHasOneListenerAndIsFreeAfterwards) {
  const Address address = listener_->address();
  const auto listen = [&] {
    return passive_.manager->Listen(loop_, address, [](std::unique_ptr<ConnectionRequest>) {});
  };
  EXPECT_TRUE(absl::IsAlreadyExists(listen().status()));
  Establish();
  listener_.reset();
  EXPECT_TRUE(listen().ok());
  LookOn();
  EXPECT_THAT(active_.events, ElementsAre(kListenerEstablished)) << "connections outlive their listener";
}

}  // namespace
}  // namespace tokamak::verbs::ibv
