// How long a pull waits: for an owner from whom nothing comes, not at all as long as for one
// that is slow.
#include <algorithm>
#include <memory>
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

class PatienceTest : public ::testing::TestWithParam<Protocol> {};

std::string NameOf(const ::testing::TestParamInfo<Protocol>& info) { return ToString(info.param); }

// 20 MiB at 2.5 MB/s take more than eight seconds.
TEST_P(PatienceTest, ASlowTransferThatMovesIsNotCut) {
  WorldOptions slow;
  slow.link.picoseconds_per_byte = 400'000;
  NodeOptions options;
  options.endpoint.chunk_size = 256 * 1024;
  options.endpoint.reliability.ack_timeout = Seconds(4);  // messages wait behind seconds of bulk data
  World world(slow);
  Node& owner = world.Add(options);
  Node& puller = world.Add(options);
  PullRequest request = puller.Request(owner, owner.AddObject(20 << 20), GetParam());
  request.deadline = Seconds(280);
  request.patience = Seconds(4);
  const base::Time asked = world.time.Now();
  auto outcome = puller.Pull(request);
  ASSERT_TRUE(world.Finish(outcome));
  EXPECT_TRUE(outcome->status.ok()) << outcome->status;
  EXPECT_TRUE(outcome->right);
  EXPECT_GT(outcome->done_at - asked, request.patience * 2);
  EXPECT_EQ(owner.endpoint->counters().protocol_errors + puller.endpoint->counters().protocol_errors, 0u);
  world.ExpectClean();
}

// 64 at 2.5 MB/s: from one turn of a transfer to its next it is more than six seconds.
TEST_P(PatienceTest, ATransferThatWaitsForItsTurnIsNotCut) {
  WorldOptions slow;
  slow.link.picoseconds_per_byte = 400'000;
  NodeOptions options;
  options.endpoint.chunk_size = 256 * 1024;
  options.endpoint.bulk_queue_pairs = 1;
  options.endpoint.reliability.ack_timeout = Seconds(4);
  World world(slow);
  Node& owner = world.Add(options);
  Node& puller = world.Add(options);
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 64; ++i) {
    PullRequest request = puller.Request(owner, owner.AddObject(1 << 20), GetParam());
    request.deadline = Seconds(280);
    request.patience = Seconds(5);
    outcomes.push_back(puller.Pull(request));
  }
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
    EXPECT_TRUE(outcome->right);
  }
  world.ExpectClean();
}

// Its device answers, it does not.
TEST_P(PatienceTest, ASilentOwnerIsGivenUpLongBeforeTheDeadline) {
  World world;
  Node& puller = world.Add();
  RawPeer owner(world, 99);
  owner.Listen();
  PullRequest request;
  request.id = base::ObjectId::FromName("x");
  request.owner = owner.service();
  request.size = {64 << 20, 0};
  request.protocol = GetParam();
  request.deadline = Seconds(280);
  auto outcome = puller.Pull(request);
  ASSERT_NE(owner.Await(MessageKind::kTransfer), nullptr);
  const base::Time asked = world.time.Now();
  ASSERT_TRUE(world.Finish(outcome, Seconds(20)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kDeadlineExceeded) << outcome->status;
  EXPECT_NE(outcome->status.message().find("nothing came"), absl::string_view::npos) << outcome->status;
  EXPECT_GE(outcome->done_at - asked, kPatience - Milliseconds(10));
  EXPECT_LE(outcome->done_at - asked, kPatience + kDrainGrace + Milliseconds(10));
  world.ExpectClean();
}

INSTANTIATE_TEST_SUITE_P(All, PatienceTest, ::testing::Values(Protocol::kEager, Protocol::kRead, Protocol::kWrite),
                         NameOf);

// An owner that claims to write, and never ends: words count as long as they say more than before;
// then comes the deadline.
class WordsTest : public ::testing::Test {
 protected:
  WordsTest() : puller_(world_.Add()), owner_(world_, 99) {
    owner_.Listen();
    request_.id = base::ObjectId::FromName("x");
    request_.owner = owner_.service();
    request_.size = {64 << 20, 0};
    request_.deadline = Seconds(30);
  }
  std::shared_ptr<Outcome> Ask(Protocol protocol) {
    request_.protocol = protocol;
    auto outcome = puller_.Pull(request_);
    number_ = owner_.Await(MessageKind::kTransfer)->header.transfer;
    world_.RunFor(Milliseconds(1));
    return outcome;
  }
  void Claim(uint64_t bytes) {
    Header progress = Plain(MessageKind::kProgress, number_);
    progress.offset = bytes;
    owner_.Send(progress);
  }
  void ExpectViolation(const std::shared_ptr<Outcome>& outcome) {
    ASSERT_TRUE(world_.Finish(outcome, Seconds(1)));
    EXPECT_EQ(puller_.endpoint->counters().protocol_errors, 1u);
    EXPECT_TRUE(world_.RunUntil([&] { return owner_.disconnected(); }, Seconds(1)));
    world_.ExpectClean();
  }

  World world_;
  Node& puller_;
  RawPeer owner_;
  PullRequest request_;
  uint64_t number_ = 0;
};

TEST_F(WordsTest, WordsKeepAPullAliveUntilItsDeadline) {
  auto outcome = Ask(Protocol::kWrite);
  for (uint64_t i = 1; i <= 28; ++i) {
    Claim(i);
    world_.RunFor(Seconds(1));
    ASSERT_FALSE(outcome->done) << i;
  }
  ASSERT_TRUE(world_.Finish(outcome, Seconds(3)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kDeadlineExceeded) << outcome->status;
  world_.ExpectClean();
}

TEST_F(WordsTest, WordsOfOneTransferCountForTheOthersWhileTheyCome) {
  auto first = Ask(Protocol::kWrite);
  auto waits = puller_.Pull(request_);
  for (uint64_t i = 1; i <= 14; ++i) {
    Claim(i);
    world_.RunFor(Seconds(1));
    ASSERT_FALSE(waits->done) << i << ": " << waits->status;
  }
  ASSERT_TRUE(world_.Finish(waits, kPatience));
  EXPECT_NE(waits->status.message().find("nothing came"), absl::string_view::npos) << waits->status;
  ASSERT_TRUE(world_.Finish(first, Seconds(1)));
  world_.ExpectClean();
}

TEST_F(WordsTest, WordsWithoutNewsViolateTheProtocol) {
  auto outcome = Ask(Protocol::kWrite);
  Claim(100);
  Claim(100);
  ExpectViolation(outcome);
}

TEST_F(WordsTest, WordsThatSayAllIsWrittenViolateTheProtocol) {
  auto outcome = Ask(Protocol::kWrite);
  Claim(64 << 20);
  ExpectViolation(outcome);
}

TEST_F(WordsTest, WordsOfAnotherProtocolViolateThisOne) {
  auto outcome = Ask(Protocol::kRead);
  Claim(100);
  ExpectViolation(outcome);
}

TEST_F(WordsTest, WordsOfAFinishedTransferAreLate) {
  auto outcome = Ask(Protocol::kWrite);
  Header fail = Plain(MessageKind::kFail, number_);
  fail.status = absl::StatusCode::kNotFound;
  owner_.Send(fail);
  Claim(100);
  ASSERT_TRUE(world_.Finish(outcome, Seconds(1)));
  world_.RunFor(Milliseconds(1));
  EXPECT_EQ(puller_.endpoint->counters().late_messages, 1u);
  EXPECT_EQ(puller_.endpoint->counters().protocol_errors, 0u);
}

}  // namespace
}  // namespace tokamak::transport::testing
