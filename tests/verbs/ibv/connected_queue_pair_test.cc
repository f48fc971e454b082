// The use that a connection over real verbs makes of its queue pair and its handler, whichever side
// made it.
#include "lib/verbs/ibv/cm/connected_queue_pair.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "tests/verbs/ibv/fake_queue_pair.h"

namespace tokamak::verbs::ibv {
namespace {

using Kind = ConnectionEvent::Kind;

class ConnectedQueuePairTest : public testing::Test {
 protected:
  void Connect(ConnectionHandler handler) {
    auto held = HeldQueuePair::Take(queue_pair_);
    ASSERT_TRUE(held.ok()) << held.status();
    connected_.emplace(*std::move(held), std::move(handler));
  }

  os::EpollLoop loop_;
  FakeQueuePair queue_pair_{loop_, 7};
  std::optional<ConnectedQueuePair> connected_;
};

TEST_F(ConnectedQueuePairTest, TheHandlerHearsOfTheBeginningAndOfTheEnd) {
  std::vector<Kind> kinds;
  std::vector<std::vector<uint8_t>> private_data;
  Connect([&](const ConnectionEvent& event) {
    kinds.push_back(event.kind);
    private_data.emplace_back(event.private_data.begin(), event.private_data.end());
    if (event.kind == Kind::kEstablished) {
      EXPECT_TRUE(event.status.ok());
      EXPECT_EQ(event.path_mtu, 2048u);
      EXPECT_EQ(event.peer_queue_pair, 17u);
    } else {
      EXPECT_EQ(event.status.message(), "gone");
    }
  });
  const std::vector<uint8_t> welcome = {1, 2}, farewell = {3};
  connected_->TellEstablished(welcome, 2048, 17);
  connected_->TellEnd(Kind::kDisconnected, absl::UnavailableError("gone"), farewell);
  EXPECT_THAT(kinds, testing::ElementsAre(Kind::kEstablished, Kind::kDisconnected));
  EXPECT_THAT(private_data, testing::ElementsAre(welcome, farewell));
}

TEST_F(ConnectedQueuePairTest, TheHandlerMayDropIt) {
  // Its captures must last as long as it runs.
  const auto captured = std::make_shared<int>(0);
  Connect([this, captured](const ConnectionEvent&) {
    connected_.reset();
    ++*captured;
  });
  connected_->TellEnd(Kind::kUnreachable, absl::UnavailableError("nobody"), {});
  EXPECT_FALSE(connected_);
  EXPECT_EQ(*captured, 1);
  EXPECT_EQ(captured.use_count(), 1) << "the handler is gone, too";
  EXPECT_FALSE(queue_pair_.held());
}

TEST_F(ConnectedQueuePairTest, WalksTheQueuePairAndHoldsItMeanwhile) {
  Connect([](const ConnectionEvent&) {});
  EXPECT_TRUE(queue_pair_.held());
  Step step;
  step.attributes.qp_state = IBV_QPS_RTR;
  step.mask = IBV_QP_STATE;
  EXPECT_TRUE(connected_->Walk(step).ok());
  EXPECT_EQ(queue_pair_.state(), QueuePairState::kReadyToReceive);
  EXPECT_FALSE(connected_->Walk(step).ok()) << "the device's refusal is passed on";
  connected_->WalkToError();
  EXPECT_EQ(queue_pair_.state(), QueuePairState::kError);
  connected_.reset();
  EXPECT_FALSE(queue_pair_.held());
}

TEST_F(ConnectedQueuePairTest, AGoneDeviceRefusesTheErrorStateAndTheEndIsReportedAllTheSame) {
  int told = 0;
  Connect([&](const ConnectionEvent&) { ++told; });
  queue_pair_.refuse_walk = absl::UnavailableError("no such device");
  connected_->WalkToError();
  connected_->TellEnd(Kind::kDisconnected, absl::UnavailableError("gone"), {});
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace tokamak::verbs::ibv
