// Settlement of two sides over TCP: their addresses, and the limits that they begin with.
#include "lib/verbs/ibv/tcp/tcp_cm.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/verbs/ibv/tcp/tcp_pair.h"

namespace tokamak::verbs::ibv {
namespace {

using testing::ElementsAre;
constexpr auto kCmEstablished = ConnectionEvent::Kind::kEstablished;
constexpr auto kCmRejected = ConnectionEvent::Kind::kRejected;

using TcpCmTest = TcpPair;

TEST_F(TcpCmTest, BothSidesWalkToReadyToSendTowardsEachOther) {
  Establish();
  EXPECT_THAT(active_.events, ElementsAre(kCmEstablished));
  EXPECT_THAT(passive_.events, ElementsAre(kCmEstablished));
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
  ASSERT_TRUE(Drive([this] { return active_.Saw(kCmEstablished); }));
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
  ASSERT_TRUE(Drive([this] { return active_.Saw(kCmEstablished) && passive_.Saw(kCmEstablished); }));
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
  ASSERT_TRUE(Drive([this] { return active_.Saw(kCmEstablished); }));
  EXPECT_EQ(active_.private_data, answer);

  TcpSide other(loop_, 3);
  ASSERT_TRUE(Connect(other, ask).ok());
  request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  request->Reject(answer);
  ASSERT_TRUE(Drive([&] { return !other.events.empty(); }));
  EXPECT_THAT(other.events, ElementsAre(kCmRejected));
  EXPECT_EQ(other.private_data, answer);
  EXPECT_EQ(other.queue_pair.state(), QueuePairState::kInit) << "good for another attempt";
}

TEST_F(TcpCmTest, SidesOfDifferentLinksAreNotConnected) {
  active_.port.link = LinkKind::kInfiniBand;
  active_.port.lid = 4;
  ASSERT_TRUE(Connect(active_).ok());
  auto request = AwaitRequest();
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(Accept(*request)));
  ASSERT_TRUE(Drive([this] { return active_.Saw(kCmRejected); }));
}

TEST_F(TcpCmTest, InfiniBandTellsItsLid) {
  for (TcpSide* side : {&active_, &passive_}) {
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

}  // namespace
}  // namespace tokamak::verbs::ibv
