#include "lib/node/engines/peer_calls.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/node/calls/call_router.h"
#include "sim/time/sim_loop.h"

namespace tokamak::node {
namespace {

class PeerCallsTest : public testing::Test {
 protected:
  PeerCallsTest() { handled_.reserve(4 * kMaxReportsWaiting); }

  static verbs::Address Peer(uint16_t port) {
    verbs::Address address = *verbs::Address::Parse("10.0.0.1");
    address.port = port;
    return address;
  }

  // A call of a peer, the last of many in a task. Returns whether it was taken.
  bool Take(uint16_t peer, bool own = false) {
    std::vector<uint8_t> request = {static_cast<uint8_t>(Service::kObjects), 1};
    if (own) request = {static_cast<uint8_t>(Service::kDirectory), kLastKindOfOwnLife};
    const auto answer = [](absl::Span<const uint8_t>) {};
    base::Pending call = calls_.Take(request, transport::Reply(answer, Peer(peer), PeerCalls::kCallsOfTask + 1));
    if (call == nullptr) return false;
    held_.push_back(std::move(call));
    return true;
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  std::vector<bool> handled_;  // whether it was of a node's own life
  PeerCalls calls_{loop_, [this](absl::Span<const uint8_t> request, const transport::Reply&) -> base::Pending {
                     handled_.push_back(IsOfOwnLife(request));
                     return nullptr;
                   }};
  std::vector<base::Pending> held_;
};

TEST_F(PeerCallsTest, APeerThatAsksForAllLeavesPlacesToOthers) {
  size_t taken = 0;
  while (Take(1)) ++taken;
  EXPECT_EQ(taken, kMaxReportsWaiting / 2);
  EXPECT_TRUE(Take(2));
  EXPECT_TRUE(Take(1, /*own=*/true)) << "lives have places of their own";
}

TEST_F(PeerCallsTest, PlacesComeBackWhenCallsRunOrAreDropped) {
  for (const bool dropped : {false, true}) {
    while (Take(1)) continue;
    if (dropped) {
      held_.clear();
    } else {
      scheduler_.RunFor(base::Milliseconds(10));
    }
    EXPECT_TRUE(Take(1));
  }
}

TEST_F(PeerCallsTest, OwnLivesHaveThreeOfFourTurns) {
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Take(1) && Take(1, /*own=*/true));
  scheduler_.RunFor(base::Milliseconds(10));
  ASSERT_EQ(handled_.size(), 400u);
  for (size_t i = 0; i < PeerCalls::kCallsOfTask; ++i) EXPECT_EQ(handled_[i], i < 48) << i;
}

TEST_F(PeerCallsTest, DroppedCallsNeverRun) {
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Take(1));
  calls_.DropAll();
  scheduler_.RunFor(base::Milliseconds(10));
  EXPECT_TRUE(handled_.empty());
}

}  // namespace
}  // namespace tokamak::node
