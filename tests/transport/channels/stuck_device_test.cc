// A device that takes messages and tells nothing of them any more, neither that they arrived nor
// that they did not, as Soft-RoCE does whose own interface was down (docs/verbs.md).
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "lib/transport/limits.h"
#include "tests/transport/posting_device.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Seconds;

class StuckDeviceTest : public ::testing::TestWithParam<Protocol> {
 protected:
  StuckDeviceTest() {
    owner_ = &AddNode(owner_is_stuck_);
    puller_ = &AddNode(puller_is_stuck_);
  }

  absl::Status Pull(base::Duration patience = kPatience) {
    PullRequest request = puller_->Request(*owner_, owner_->AddObject(100000), GetParam());
    request.patience = patience;
    auto outcome = puller_->Pull(request);
    EXPECT_TRUE(world_.Finish(outcome));
    return outcome->status;
  }

  Node& AddNode(const bool& stuck) {
    NodeOptions options;
    options.wrap = [&stuck](std::unique_ptr<verbs::Device> device) {
      return WithPostSend(
          std::move(device), [&stuck](verbs::QueuePair& queue_pair, absl::Span<const verbs::SendRequest> requests) {
            return stuck ? verbs::PostResult{requests.size(), absl::OkStatus()} : queue_pair.PostSend(requests);
          });
    };
    return world_.Add(options);
  }

  bool owner_is_stuck_ = false, puller_is_stuck_ = false;
  World world_;
  Node* owner_;
  Node* puller_;
};

INSTANTIATE_TEST_SUITE_P(By, StuckDeviceTest, ::testing::Values(Protocol::kEager, Protocol::kRead, Protocol::kWrite),
                         [](const auto& tested) { return std::string(ToString(tested.param)); });

TEST_P(StuckDeviceTest, AnEndpointWithWorkLeavesItsConnectionForANewOne) {
  ASSERT_EQ(Pull(), absl::OkStatus());
  puller_is_stuck_ = true;
  const base::Time began = world_.time.Now();
  absl::Status status;
  do {
    status = Pull();
    ASSERT_FALSE(status.ok());
  } while (!absl::IsUnavailable(status) && world_.time.Now() < began + Seconds(60));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_GT(world_.time.Now(), began + kPatience) << "a device that is only slow has its time";
  EXPECT_LT(world_.time.Now(), began + kPatience * 2);
  puller_is_stuck_ = false;
  EXPECT_EQ(Pull(), absl::OkStatus());
  EXPECT_EQ(puller_->endpoint->counters().connections_opened, 2u);
  world_.ExpectClean();
}

// An endpoint whose answers are lost has no work any more, and only itself can see it.
TEST_P(StuckDeviceTest, AnEndpointThatHasAnsweredLeavesItsConnectionToo) {
  ASSERT_EQ(Pull(), absl::OkStatus());
  owner_is_stuck_ = true;
  EXPECT_FALSE(Pull(Seconds(1)).ok());
  world_.RunFor(kPatience * 2);
  owner_is_stuck_ = false;
  EXPECT_EQ(Pull(), absl::OkStatus());
  EXPECT_EQ(puller_->endpoint->counters().connections_opened, 2u);
  world_.ExpectClean();
}

// A message that was given no completion of its own is none that the device owes.
TEST_P(StuckDeviceTest, AConnectionOfFewMessagesIsKept) {
  owner_->source.SetDelay(Seconds(2));
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(Pull(), absl::OkStatus());
    world_.RunFor(Seconds(3));
  }
  EXPECT_EQ(puller_->endpoint->counters().connections_opened, 1u);
  world_.ExpectClean();
}

}  // namespace
}  // namespace tokamak::transport::testing
