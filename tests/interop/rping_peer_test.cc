#include "tests/interop/rping_peer.h"

#include <array>
#include <future>
#include <optional>
#include <vector>

#include "tests/interop/two_peers.h"

namespace tokamak::interop {
namespace {

Part Server(uint32_t size, uint32_t* served, std::optional<uint32_t> most = std::nullopt) {
  return [=](Link& link, const Join& join) -> absl::Status {
    auto peer = RpingPeer::Prepare(link, size);
    if (!peer.ok()) return peer.status();
    if (auto s = join(); !s.ok()) return s;
    const auto answered = (*peer)->Serve(most);
    if (answered.ok()) *served = *answered;
    return answered.status();
  };
}

Part Client(uint32_t size, uint32_t pings) {
  return [=](Link& link, const Join& join) -> absl::Status {
    auto peer = RpingPeer::Prepare(link, size);
    if (!peer.ok()) return peer.status();
    if (auto s = join(); !s.ok()) return s;
    return (*peer)->Ping(pings);
  };
}

using RpingPeerTest = TwoPeers;

TEST_F(RpingPeerTest, ServerAndClientUnderstandEachOtherWhicheverDeviceConnects) {
  for (const int server : {0, 1}) {
    uint32_t served = 0;
    const auto [server_status, client_status] = Meet(server, Server(64, &served), 1 - server, Client(64, 25));
    EXPECT_TRUE(server_status.ok()) << server_status;
    EXPECT_TRUE(client_status.ok()) << client_status;
    EXPECT_EQ(served, 25);
  }
}

TEST_F(RpingPeerTest, AServerThatIsToldHowManyComeDoesNotWaitForTheClientToLeave) {
  uint32_t served = 0;
  std::promise<void> server_is_through;
  const Part server = [&](Link& link, const Join& join) -> absl::Status {
    const absl::Status status = Server(64, &served, 3)(link, join);
    server_is_through.set_value();
    return status.ok() ? link.AwaitDisconnection() : status;
  };
  const Part client = [&](Link& link, const Join& join) -> absl::Status {
    const absl::Status status = Client(64, 3)(link, join);
    server_is_through.get_future().wait();
    return status;
  };
  const auto [server_status, client_status] = Meet(0, server, 1, client);
  EXPECT_TRUE(server_status.ok()) << server_status;
  EXPECT_TRUE(client_status.ok()) << client_status;
  EXPECT_EQ(served, 3);
}

TEST_F(RpingPeerTest, PingsHaveEverySizeOfRping) {
  for (const uint32_t size : {kMinPing, 4095u, 4096u, 4097u, kMaxPing}) {
    uint32_t served = 0;
    const auto [server_status, client_status] = Meet(0, Server(kMaxPing, &served), 1, Client(size, 3));
    EXPECT_TRUE(server_status.ok()) << size << ": " << server_status;
    EXPECT_TRUE(client_status.ok()) << size << ": " << client_status;
    EXPECT_EQ(served, 3);
  }
}

TEST_F(RpingPeerTest, ServerRefusesASourceLargerThanItsMemory) {
  uint32_t served = 0;
  const auto [server_status, client_status] = Meet(0, Server(64, &served), 1, Client(65, 1));
  EXPECT_EQ(server_status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client_status.code(), absl::StatusCode::kAborted) << client_status;
}

// A server that says "go ahead" at once, and moves nothing.
Part IdleServer(std::array<std::vector<uint8_t>, 2>* messages) {
  return [=](Link& link, const Join& join) -> absl::Status {
    std::vector<uint8_t> message(16);
    auto region = link.Register(absl::MakeSpan(message));
    if (!region.ok()) return region.status();
    const verbs::Sge piece = {message.data(), 16, (*region)->lkey()};
    if (auto s = link.PostReceive(piece); !s.ok()) return s;
    if (auto s = join(); !s.ok()) return s;
    for (std::vector<uint8_t>& seen : *messages) {
      if (auto received = link.AwaitReceive(); !received.ok()) return received.status();
      seen = message;
      if (auto s = link.PostReceive(piece); !s.ok()) return s;
      if (auto s = link.PostSend({}, piece); !s.ok()) return s;
    }
    return link.AwaitDisconnection();
  };
}

TEST_F(RpingPeerTest, ClientNoticesThatNothingWasWritten) {
  std::array<std::vector<uint8_t>, 2> messages;
  const auto [server_status, client_status] = Meet(0, IdleServer(&messages), 1, Client(1000, 1));
  EXPECT_TRUE(server_status.ok()) << server_status;
  EXPECT_EQ(client_status.code(), absl::StatusCode::kDataLoss) << client_status;
}

TEST_F(RpingPeerTest, TheClientSendsTheSizeBigEndianAtTheEndOfEachMessage) {
  std::array<std::vector<uint8_t>, 2> messages;
  Meet(0, IdleServer(&messages), 1, Client(1000, 1));
  for (const std::vector<uint8_t>& message : messages) {
    ASSERT_EQ(message.size(), 16);
    EXPECT_EQ(std::vector<uint8_t>(message.begin() + 12, message.end()), (std::vector<uint8_t>{0, 0, 0x03, 0xe8}));
  }
  EXPECT_NE(messages[0], messages[1]);  // the source, then the sink
}

// As printed by rping -v.
TEST(PingTextTest, ThePingTextIsThatOfRping) {
  EXPECT_EQ(PingText(0, 32), std::string("rdma-ping-0: ABCDEFGHIJKLMNOPQR\0", 32));
  EXPECT_EQ(PingText(1, 32), std::string("rdma-ping-1: BCDEFGHIJKLMNOPQRS\0", 32));
  EXPECT_EQ(PingText(57, 32), std::string("rdma-ping-57: zABCDEFGHIJKLMNOP\0", 32));
  EXPECT_EQ(PingText(58, 32), std::string("rdma-ping-58: ABCDEFGHIJKLMNOPQ\0", 32));
}

}  // namespace
}  // namespace tokamak::interop
