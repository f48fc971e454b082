// Bulk queue pairs are there while something large moves, and go when nothing does.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/transport/limits.h"
#include "tests/transport/raw_peer.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

constexpr uint64_t kLarge = 1 << 20;

class PrimaryRailTest : public ::testing::TestWithParam<Protocol> {
 protected:
  explicit PrimaryRailTest(const WorldOptions& options = {}, const NodeOptions& node = {})
      : world_(options), puller_(world_.Add(node)), owner_(world_.Add(node)) {}
  ~PrimaryRailTest() override { world_.ExpectClean(); }

  void Pull(uint64_t size, Protocol protocol) {
    const auto outcome = puller_.Pull(owner_, owner_.AddObject(size), protocol);
    ASSERT_TRUE(world_.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
    EXPECT_EQ(outcome->report.protocol, protocol);
  }
  void ExpectConnected(uint64_t times) {
    EXPECT_EQ(puller_.endpoint->counters().bulk_connected, times);
    EXPECT_EQ(owner_.endpoint->counters().bulk_connected, times);
    EXPECT_EQ(puller_.endpoint->counters().connections_opened, 1u);
    EXPECT_EQ(puller_.endpoint->counters().connections_lost, 0u);
    EXPECT_EQ(puller_.endpoint->counters().protocol_errors + owner_.endpoint->counters().protocol_errors, 0u);
  }
  uint32_t Completions() const { return puller_.endpoint->use().completions + owner_.endpoint->use().completions; }

  World world_;
  Node& puller_;
  Node& owner_;
};

INSTANTIATE_TEST_SUITE_P(By, PrimaryRailTest, ::testing::Values(Protocol::kRead, Protocol::kWrite),
                         [](const auto& tested) { return std::string(ToString(tested.param)); });

TEST_P(PrimaryRailTest, BulkQueuePairsAreMadeWithTheFirstLargePull) {
  Pull(100, Protocol::kEager);
  world_.RunFor(Seconds(1));
  ExpectConnected(0);
  Pull(kLarge, GetParam());
  ExpectConnected(1);
  Pull(kLarge, GetParam());
  ExpectConnected(1);
}

TEST_P(PrimaryRailTest, BulkQueuePairsAreGivenBackWhenIdleAndMadeAgain) {
  Pull(100, Protocol::kEager);
  world_.RunFor(kWindowRest * 2);
  const uint32_t small = Completions();
  for (uint64_t round = 1; round <= 3; ++round) {
    Pull(kLarge, GetParam());
    EXPECT_GT(Completions(), small);
    world_.RunFor(kBulkRest + Seconds(1));
    EXPECT_EQ(puller_.endpoint->counters().bulk_rested, round);
    ExpectConnected(round);
    world_.RunFor(kWindowRest * 2);
    EXPECT_EQ(Completions(), small) << "on both sides";
  }
}

TEST_P(PrimaryRailTest, SmallPullsDoNotKeepBulkQueuePairs) {
  Pull(kLarge, GetParam());
  for (int i = 0; i < 15; ++i) {
    world_.RunFor(Seconds(1));
    Pull(100, Protocol::kEager);
  }
  EXPECT_EQ(puller_.endpoint->counters().bulk_rested, 1u);
}

TEST_P(PrimaryRailTest, APullThatNeedsBulkQueuePairsWhileTheyGoGetsNewOnes) {
  for (int microseconds : {0, 1, 2, 3, 5, 10}) {
    const uint64_t rested = puller_.endpoint->counters().bulk_rested;
    Pull(kLarge, GetParam());
    ASSERT_TRUE(world_.RunUntil([&] { return puller_.endpoint->counters().bulk_rested > rested; }, kBulkRest * 2));
    world_.RunFor(base::Microseconds(microseconds));
    Pull(kLarge, GetParam());
    world_.RunFor(kBulkRest + Seconds(1));
  }
  ExpectConnected(12);
}

TEST_P(PrimaryRailTest, BulkQueuePairsServeManyPullsAtOnce) {
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 20; ++i) outcomes.push_back(puller_.Pull(owner_, owner_.AddObject(kLarge + i), GetParam()));
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(world_.Finish(outcome));
    EXPECT_TRUE(outcome->right) << outcome->status;
  }
  ExpectConnected(1);
}

// 40 MB at 2.5 MB/s.
class SlowPrimaryRailTest : public PrimaryRailTest {
 protected:
  static WorldOptions Slow() {
    WorldOptions slow;
    slow.link.picoseconds_per_byte = 400'000;
    return slow;
  }
  static NodeOptions Patient() {
    NodeOptions options;
    options.endpoint.chunk_size = 256 << 10;
    options.endpoint.reliability.ack_timeout = Seconds(4);  // messages wait behind seconds of bulk data
    return options;
  }
  SlowPrimaryRailTest() : PrimaryRailTest(Slow(), Patient()) {}
};

INSTANTIATE_TEST_SUITE_P(By, SlowPrimaryRailTest, ::testing::Values(Protocol::kRead, Protocol::kWrite),
                         [](const auto& tested) { return std::string(ToString(tested.param)); });

TEST_P(SlowPrimaryRailTest, BulkQueuePairsStayWhileSomethingMoves) {
  const base::Time began = world_.time.Now();
  Pull(40'000'000, GetParam());
  EXPECT_GT(world_.time.Now() - began, kBulkRest);
  ExpectConnected(1);
  EXPECT_EQ(puller_.endpoint->counters().bulk_rested, 0u);
}

// An owner that refuses bulk queue pairs, as one whose device has none left.
class RefusedPrimaryRailTest : public ::testing::Test {
 protected:
  RefusedPrimaryRailTest() : puller_(world_.Add()), owner_(world_, 99) {
    owner_.refuses_bulk = true;
    owner_.on_message = [this](const RawPeer::Received& message) {
      if (message.header.kind == MessageKind::kRailDown) owner_.Send(Plain(MessageKind::kRailDown, 0));
    };
    owner_.Listen();
  }
  std::shared_ptr<Outcome> Pull(Protocol protocol) {
    PullRequest request;
    request.id = base::ObjectId::FromName("x");
    request.owner = owner_.service();
    request.size = {kSize, 0};
    request.protocol = protocol;
    return puller_.Pull(request);
  }
  void ExpectUnavailable(const std::shared_ptr<Outcome>& outcome) {
    ASSERT_TRUE(world_.Finish(outcome, Seconds(1)));
    EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
  }

  static constexpr uint64_t kSize = 100'000;
  World world_;
  Node& puller_;
  RawPeer owner_;
};

TEST_F(RefusedPrimaryRailTest, OnlyLargePullsFailAndMessagesGoOn) {
  std::optional<absl::Status> answer;
  const uint8_t question[] = {1};
  const base::Pending call = puller_.endpoint->Call(owner_.service(), question, Seconds(60),
                                                    [&](const auto& reply) { answer = reply.status(); });
  ASSERT_NE(owner_.Await(MessageKind::kCall), nullptr);
  const uint64_t number = owner_.Await(MessageKind::kCall)->header.transfer;
  ExpectUnavailable(Pull(Protocol::kRead));
  world_.RunFor(Milliseconds(100));
  EXPECT_FALSE(owner_.disconnected());
  EXPECT_FALSE(answer.has_value());
  owner_.Send(Plain(MessageKind::kReply, number), {2});
  ASSERT_TRUE(world_.RunUntil([&] { return answer.has_value(); }, Seconds(1)));
  EXPECT_TRUE(answer->ok()) << *answer;
  EXPECT_EQ(puller_.endpoint->counters().connections_lost, 0u);
  EXPECT_EQ(puller_.endpoint->counters().protocol_errors, 0u);
}

TEST_F(RefusedPrimaryRailTest, ItIsTriedAgainOnlyAfterAWhile) {
  ExpectUnavailable(Pull(Protocol::kRead));
  for (int i = 0; i < 5; ++i) {
    ExpectUnavailable(Pull(i % 2 == 0 ? Protocol::kWrite : Protocol::kRead));
    world_.RunFor(Milliseconds(500));
  }
  EXPECT_EQ(owner_.bulk_refused, 1);
  EXPECT_EQ(owner_.Count(MessageKind::kRailDown), 1u);
  world_.RunFor(kRejoinInterval);
  owner_.refuses_bulk = false;
  owner_.received.clear();
  const auto outcome = Pull(Protocol::kRead);
  const RawPeer::Received* asked = owner_.Await(MessageKind::kTransfer);
  ASSERT_NE(asked, nullptr);
  FillObject(base::ObjectId::FromName("x"), owner_.memory().subspan(0, kSize));
  Header data = Plain(MessageKind::kData, asked->header.transfer, Protocol::kRead);
  data.deadline_ms = 5000;
  data.size = {kSize, 0};
  data.remote = owner_.range();
  owner_.Send(data);
  ASSERT_TRUE(world_.Finish(outcome, Seconds(1)));
  EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
}

TEST_F(RefusedPrimaryRailTest, AWriteThatCannotComeEndsToo) {
  const auto outcome = Pull(Protocol::kWrite);
  ASSERT_TRUE(world_.Finish(outcome, Seconds(2)));  // the owner does not answer its CANCEL
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
  world_.ExpectClean();
}

TEST(HostilePrimaryRailTest, APeerThatGivesBackMissingQueuePairsIsAnswered) {
  World world;
  Node& node = world.Add();
  RawPeer raw(world, 9);
  raw.Connect(node.service, {0});
  world.RunFor(Milliseconds(10));
  for (size_t i = 1; i <= 5; ++i) {
    raw.Send(Plain(MessageKind::kRailDown, 0));
    world.RunFor(Milliseconds(1));
    EXPECT_EQ(raw.Count(MessageKind::kRailDown), i) << "it cannot know whether the node has made its ends";
  }
  EXPECT_FALSE(raw.disconnected());
}

TEST(HostilePrimaryRailTest, ABulkQueuePairOfNoConnectionIsRefused) {
  World world;
  Node& node = world.Add();
  RawPeer raw(world, 9);
  raw.Connect(node.service, {1});
  EXPECT_TRUE(world.RunUntil([&] { return raw.rejected(); }, Seconds(1)));
}

}  // namespace
}  // namespace tokamak::transport::testing
