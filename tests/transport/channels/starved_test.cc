// A peer that gives no credits back: its device has taken all that it may, so that no message waits
// for an acknowledgement whose absence would tell that it is gone.
#include <vector>

#include "gtest/gtest.h"
#include "lib/transport/limits.h"
#include "lib/transport/messages/hello.h"
#include "tests/transport/raw_peer.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

class StarvedTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kCalls = 10;  // more than the first window has room for

  StarvedTest() : caller_(world_.Add()), peer_(world_, 99) {
    peer_.hello.first_slots = kMinFirstSlots;
    peer_.hello.receive_slots = kMinReceiveSlots;
    peer_.Listen();
  }

  // Calls are made, and those that have credits arrive.
  void Call() {
    const uint8_t request[] = {1};
    for (uint64_t i = 0; i < kCalls; ++i) {
      calls_.push_back(caller_.endpoint->Call(peer_.service(), request, Seconds(300),
                                              [this](const auto& reply) { answers_.push_back(reply.status()); }));
    }
    ASSERT_NE(peer_.Await(MessageKind::kCall), nullptr);
    world_.RunFor(Milliseconds(100));
    ASSERT_LT(peer_.Count(MessageKind::kCall), kCalls) << "some wait for credits";
    ASSERT_TRUE(answers_.empty());
  }

  void KillPeer() { world_.network->Partition({*verbs::Address::Parse("10.0.0.99")}); }

  void ExpectTheConnectionEnds(base::Duration limit) {
    EXPECT_TRUE(world_.RunUntil([this] { return answers_.size() == kCalls; }, limit));
    for (const absl::Status& status : answers_) EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  }

  World world_;
  Node& caller_;
  RawPeer peer_;
  std::vector<base::Pending> calls_;
  std::vector<absl::Status> answers_;
};

TEST_F(StarvedTest, APeerThatDiedIsNoticedThoughAllThatLeftWasAcknowledged) {
  Call();
  KillPeer();
  ExpectTheConnectionEnds(kPatience);
}

TEST_F(StarvedTest, APeerThatDiedAfterTheLastProbeIsNoticedToo) {
  Call();
  ASSERT_TRUE(world_.RunUntil([this] { return peer_.Count(MessageKind::kCredit) > 0; }, Seconds(5)));
  world_.RunFor(Milliseconds(100));
  KillPeer();
  ExpectTheConnectionEnds(kPatience * 2);
}

TEST_F(StarvedTest, APeerThatIsOnlySlowKeepsTheConnection) {
  Call();
  // It gives two back every five seconds, the first of them after seven.
  world_.RunFor(kPatience - Seconds(3));
  while (peer_.Count(MessageKind::kCall) < kCalls) {
    Header grant;
    grant.credits = 2;
    peer_.Send(grant);
    world_.RunFor(Seconds(5));
    ASSERT_TRUE(answers_.empty());
    ASSERT_FALSE(peer_.disconnected());
  }
  EXPECT_EQ(caller_.endpoint->counters().connections_lost, 0u);
}

}  // namespace
}  // namespace tokamak::transport::testing
