// How many connections one peer may have, and what becomes of one more: each life of a node leaves
// some that nobody ends.
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/transport/limits.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Seconds;

// Many endpoints of one address, all of which live on without work.
class PeerBoundTest : public ::testing::Test {
 protected:
  PeerBoundTest() : owner_(world_.Add(Small())), peer_(world_.Add(Small())), object_(owner_.AddObject(100)) {
    for (uint32_t i = 0; i < kMaxInboundOfPeer; ++i) lives_.push_back(NewLife());
  }
  static NodeOptions Small() {
    NodeOptions options;
    options.endpoint.slot_size = 1024;
    options.endpoint.receive_slots = 16;
    options.endpoint.bulk_queue_pairs = 1;
    return options;
  }

  std::unique_ptr<Endpoint> NewLife() {
    EndpointOptions options = Small().endpoint;
    options.security = SecurityUnderTest();
    auto opened = Endpoint::Open(peer_.loop, *peer_.device, *peer_.domain, *peer_.registration, peer_.source,
                                 base::Random(++lives_ever_), world_.trace, options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  std::shared_ptr<Outcome> PullBy(std::unique_ptr<Endpoint>& life) {
    std::swap(peer_.endpoint, life);
    auto outcome = peer_.Pull(owner_, object_, Protocol::kEager);
    std::swap(peer_.endpoint, life);
    return outcome;
  }
  void PullAllBy(std::unique_ptr<Endpoint>& life) {
    auto outcome = PullBy(life);
    ASSERT_TRUE(world_.Finish(outcome, Seconds(1)));
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
  }

  World world_;
  Node& owner_;
  Node& peer_;
  const base::ObjectId object_;
  uint64_t lives_ever_ = 0;
  std::vector<std::unique_ptr<Endpoint>> lives_;
};

TEST_F(PeerBoundTest, TheConnectionThatWasUsedLeastLatelyGivesWay) {
  owner_.source.SetDelay(Seconds(2));
  auto first = PullBy(lives_[0]);  // has work all the time
  ASSERT_TRUE(world_.RunUntil([this] { return owner_.source.pins() == 1; }, Seconds(1)));
  owner_.source.SetDelay({});
  for (size_t i = 1; i < lives_.size(); ++i) PullAllBy(lives_[i]);
  PullAllBy(lives_[1]);  // so that it is not the oldest
  std::unique_ptr<Endpoint> one_more = NewLife();
  PullAllBy(one_more);
  ASSERT_FALSE(first->done);
  ASSERT_TRUE(world_.Finish(first, Seconds(3)));
  EXPECT_TRUE(first->status.ok()) << first->status;
  for (const size_t i : {0, 1, 3}) PullAllBy(lives_[i]);
  for (const size_t i : {0, 1, 3}) EXPECT_EQ(lives_[i]->counters().connections_opened, 1u) << i;
  PullAllBy(lives_[2]);
  EXPECT_EQ(lives_[2]->counters().connections_opened, 2u);
  world_.ExpectClean();
}

TEST_F(PeerBoundTest, AFurtherPeerIsRefusedWhileAllHaveWork) {
  owner_.source.SetDelay(Seconds(2));
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (std::unique_ptr<Endpoint>& life : lives_) {
    outcomes.push_back(PullBy(life));
    ASSERT_TRUE(world_.RunUntil([&] { return owner_.source.pins() == outcomes.size(); }, Seconds(1)));
  }
  std::unique_ptr<Endpoint> one_more = NewLife();
  auto refused = PullBy(one_more);
  ASSERT_TRUE(world_.Finish(refused, Seconds(1)));
  EXPECT_EQ(refused->status.code(), absl::StatusCode::kUnavailable) << refused->status;
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(world_.Finish(outcome, Seconds(5)));
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
  }
  owner_.source.SetDelay({});
  PullAllBy(one_more);
  world_.ExpectClean();
}

}  // namespace
}  // namespace tokamak::transport::testing
