// A path over which requests are repeated without success, and short requests after it.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "lib/transport/channels/lossy_paths.h"
#include "lib/transport/limits.h"
#include "tests/transport/posting_device.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Seconds;

constexpr uint64_t kObject = 8 << 20;
constexpr uint64_t kChunk = 1 << 20;
constexpr uint64_t kShortChunk = kLossyPathPackets * 4096;  // the network's path MTU

class LossyPathTest : public ::testing::TestWithParam<Protocol> {
 protected:
  LossyPathTest() {
    options_.endpoint.chunk_size = kChunk;
    options_.wrap = [this](std::unique_ptr<verbs::Device> device) {
      return WithPostSend(std::move(device),
                          [this](verbs::QueuePair& queue_pair, absl::Span<const verbs::SendRequest> requests) {
                            for (const verbs::SendRequest& request : requests) See(request);
                            return queue_pair.PostSend(requests);
                          });
    };
    owner_ = &world_.Add(options_);
    puller_ = &world_.Add(options_);
    id_ = owner_->AddObject(kObject);
  }

  // The longest one-sided request of a pull.
  uint64_t LongestOfAPull(Node& puller) { return LongestOfAPull(puller, *owner_, id_); }
  uint64_t LongestOfAPull(Node& puller, Node& owner, const base::ObjectId& id) {
    longest_ = 0;
    const auto outcome = puller.Pull(owner, id, GetParam());
    EXPECT_TRUE(world_.Finish(outcome));
    EXPECT_EQ(outcome->status, absl::OkStatus());
    EXPECT_TRUE(outcome->right);
    return longest_;
  }

  // A pull during which the wire is cut until its requests were repeated without success.
  void LoseAPull() {
    cut_ = true;
    const auto outcome = puller_->Pull(*owner_, id_, GetParam());
    EXPECT_TRUE(world_.Finish(outcome));
    EXPECT_TRUE(absl::IsUnavailable(outcome->status)) << outcome->status;
    world_.RunFor(kPatience);  // the other side's device has given up as well
    world_.MendRail(*owner_, *puller_, 0);
  }

  NodeOptions options_;
  World world_;
  Node* owner_;
  Node* puller_;
  base::ObjectId id_;

 private:
  void See(const verbs::SendRequest& request) {
    if (request.opcode == verbs::Opcode::kSend) return;
    uint64_t length = 0;
    for (const verbs::Sge& piece : request.sges) length += piece.length;
    longest_ = std::max(longest_, length);
    if (std::exchange(cut_, false)) world_.CutRail(*owner_, *puller_, 0);
  }

  uint64_t longest_ = 0;
  bool cut_ = false;  // with the next request
};

INSTANTIATE_TEST_SUITE_P(By, LossyPathTest, ::testing::Values(Protocol::kRead, Protocol::kWrite),
                         [](const auto& tested) { return std::string(ToString(tested.param)); });

TEST_P(LossyPathTest, RequestsAreLongWhileNothingIsLost) { EXPECT_EQ(LongestOfAPull(*puller_), kChunk); }

TEST_P(LossyPathTest, RequestsAreShortForAWhileAfterTheyWereRepeatedWithoutSuccess) {
  LoseAPull();
  EXPECT_EQ(LongestOfAPull(*puller_), kShortChunk);
  EXPECT_EQ(LongestOfAPull(*puller_), kShortChunk);
  world_.RunFor(kLossyPathTime);
  EXPECT_EQ(LongestOfAPull(*puller_), kChunk) << "over the same connection";
  EXPECT_EQ(puller_->endpoint->counters().connections_opened, 2u);
  world_.ExpectClean();
}

// The owner's requests where it writes, the puller's where it reads.
TEST_P(LossyPathTest, OtherPeersKeepLongRequests) {
  Node& other = world_.Add(options_);
  const base::ObjectId of_other = other.AddObject(kObject);
  LoseAPull();
  EXPECT_EQ(LongestOfAPull(other), kChunk);
  EXPECT_EQ(LongestOfAPull(*puller_, other, of_other), kChunk);
}

TEST_P(LossyPathTest, ARailThatDropsOutMakesNothingShort) {
  options_.rails = 2;
  Node& owner = world_.Add(options_);
  Node& puller = world_.Add(options_);
  const base::ObjectId id = owner.AddObject(kObject);
  EXPECT_EQ(LongestOfAPull(puller, owner, id), kChunk);
  ASSERT_TRUE(world_.RunUntil([&] { return puller.endpoint->counters().rails_joined == 1; }));
  world_.CutRail(owner, puller, 1);
  EXPECT_EQ(LongestOfAPull(puller, owner, id), kChunk);
  ASSERT_TRUE(world_.RunUntil([&] { return puller.endpoint->counters().rails_lost == 1; }));
  EXPECT_EQ(LongestOfAPull(puller, owner, id), kChunk);
}

TEST(LossyPathsTest, ThePathsNotedFirstAreForgottenWhenThereAreTooMany) {
  LossyPaths paths;
  base::Time now{};
  const auto ip = [](size_t i) { return LossyPaths::Ip{static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8), 1}; };
  for (size_t i = 0; i <= kMaxLossyPaths; ++i) {
    now = now + base::Microseconds(1);
    paths.Note(ip(i), now);
  }
  EXPECT_FALSE(paths.Has(ip(0), now));
  EXPECT_TRUE(paths.Has(ip(1), now));
  EXPECT_TRUE(paths.Has(ip(kMaxLossyPaths), now));
}

}  // namespace
}  // namespace tokamak::transport::testing
