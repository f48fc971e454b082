// Connections between whole software NICs: what the connection manager and the protocol of the
// queue pairs promise together.
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/verbs/soft/cm/mad.h"
#include "tests/verbs/soft/cm/connected_hosts.h"

namespace tokamak::verbs::soft {
namespace {

using base::Milliseconds;
using base::Seconds;
using testing::ElementsAre;
using Kind = ConnectionEvent::Kind;
using ConnectionTest = ConnectedHosts;

bool IsMad(const Packet& packet, size_t body) {
  if (packet.destination != kManagementQueuePair || packet.slices != 1) return false;
  const auto mad = DecodeMad({packet.payload[0].data, packet.payload[0].length});
  return mad.ok() && mad->body.index() == body;
}
constexpr size_t kRtu = 4;
constexpr size_t kDreq = 5;

TEST_F(ConnectionTest, FirstDataStandsInForALostRtu) {
  fabric_.lose = [](const Packet& packet) { return IsMad(packet, kRtu); };
  auto listener = Serve(*b_);
  HostEnd active(*a_);
  ASSERT_TRUE(active.Connect(b_->Service()).ok());
  Run(Milliseconds(10));
  ASSERT_THAT(active.events, ElementsAre(Kind::kEstablished));
  ASSERT_EQ(served_.size(), 1u);
  EXPECT_EQ(served_[0]->queue_pair->state(), QueuePairState::kReadyToReceive);
  ASSERT_TRUE(active.Post(Opcode::kWrite, 100, *served_[0]).ok());
  Run(Milliseconds(10));
  EXPECT_THAT(served_[0]->events, ElementsAre(Kind::kEstablished));
  EXPECT_TRUE(served_[0]->up());
  ASSERT_TRUE(served_[0]->Post(Opcode::kRead, 100, active).ok());
  Run(Milliseconds(10));
  ASSERT_EQ(b_->Poll().size(), 1u);
}

TEST_F(ConnectionTest, ALostRtuIsAskedForAgain) {
  int lost = 0;
  fabric_.lose = [&](const Packet& packet) { return IsMad(packet, kRtu) && lost++ < 3; };
  auto listener = Serve(*b_);
  HostEnd active(*a_);
  ASSERT_TRUE(active.Connect(b_->Service()).ok());
  Run(Seconds(2));
  ASSERT_EQ(served_.size(), 1u);
  EXPECT_THAT(served_[0]->events, ElementsAre(Kind::kEstablished));
}

TEST_F(ConnectionTest, TheSmallerMtuOfTwoDevicesIsUsed) {
  Host small(scheduler_, fabric_, trace_, 3, 512);
  for (auto [from, to] : {std::pair<Host*, Host*>(a_.get(), &small), std::pair<Host*, Host*>(&small, a_.get())}) {
    auto listener = Serve(*to);
    HostEnd active(*from);
    ASSERT_TRUE(active.Connect(to->Service()).ok());
    Run(Milliseconds(10));
    ASSERT_THAT(active.events, ElementsAre(Kind::kEstablished));
    EXPECT_EQ(active.path_mtu, 512u);
    ASSERT_TRUE(active.Post(Opcode::kWrite, 5000, *served_.back()).ok());
    Run(Milliseconds(10));
    const std::vector<Completion> done = from->Poll();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, CompletionStatus::kSuccess);
    served_.clear();
    Run(Seconds(10));
  }
}

TEST_F(ConnectionTest, WorkInFlightComesBackWhenEitherSideDrops) {
  for (const bool active_drops : {true, false}) {
    HostEnd active(*a_);
    Establish(active);
    HostEnd& passive = *served_.back();
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(active.Post(i % 2 == 0 ? Opcode::kWrite : Opcode::kRead, 1 << 20, passive).ok());
      ASSERT_TRUE(passive.Post(i % 2 == 0 ? Opcode::kRead : Opcode::kWrite, 1 << 20, active).ok());
    }
    Run(base::Microseconds(100));
    (active_drops ? active : passive).connection.reset();
    Run(Seconds(5));
    EXPECT_EQ(a_->Poll().size(), 20u);
    EXPECT_EQ(b_->Poll().size(), 20u);
    EXPECT_EQ((active_drops ? passive : active).events.back(), Kind::kDisconnected);
    EXPECT_EQ(active.queue_pair->state(), QueuePairState::kError);
    EXPECT_EQ(passive.queue_pair->state(), QueuePairState::kError);
    served_.clear();
  }
}

TEST_F(ConnectionTest, APeerThatVanishedIsFoundOutByDataAndTheRestIsCleanedUp) {
  HostEnd active(*a_);
  Establish(active);
  b_->region.reset();
  const Address gone = b_->Service();
  network_.Partition({b_->device->address()});
  ASSERT_TRUE(active.Post(Opcode::kWrite, 100, active).ok());
  Run(Seconds(10));
  EXPECT_THAT(active.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
  const std::vector<Completion> done = a_->Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CompletionStatus::kRetryExceeded);
  HostEnd another(*a_);
  ASSERT_TRUE(another.Connect(gone).ok());
  Run(Seconds(6));
  EXPECT_THAT(another.events, ElementsAre(Kind::kUnreachable));
  network_.Heal();
  HostEnd third(*a_);
  auto listener = Serve(*b_);
  ASSERT_TRUE(third.Connect(gone).ok());
  Run(Seconds(6));
  EXPECT_THAT(third.events, ElementsAre(Kind::kEstablished));
}

TEST_F(ConnectionTest, ASideThatWasNeverToldFindsOutWhenItSends) {
  HostEnd active(*a_);
  Establish(active);
  fabric_.lose = [](const Packet& packet) { return IsMad(packet, kDreq); };
  active.connection.reset();
  Run(Seconds(20));
  HostEnd& passive = *served_.back();
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished));
  ASSERT_TRUE(passive.Post(Opcode::kWrite, 100, active).ok());
  Run(Seconds(10));
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
}

TEST_F(ConnectionTest, ADeviceMayBeDroppedBeforeItsConnections) {
  HostEnd active(*a_);
  Establish(active);
  b_->device.reset();
  ASSERT_TRUE(active.Post(Opcode::kWrite, 100, *served_.back()).ok());
  Run(Milliseconds(10));
  EXPECT_EQ(a_->Poll().size(), 1u);
  EXPECT_TRUE(active.up());
}

TEST_F(ConnectionTest, ADeviceThatIsClosedRightAfterItsConnectionHasToldThePeer) {
  auto active = std::make_unique<HostEnd>(*a_);
  Establish(*active);
  active.reset();
  a_.reset();
  Run(Milliseconds(10));
  EXPECT_THAT(served_.back()->events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
}

}  // namespace
}  // namespace tokamak::verbs::soft
