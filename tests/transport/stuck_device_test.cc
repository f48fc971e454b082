// A device that takes messages and tells nothing of them any more, neither that they arrived nor that they did not, as Soft-RoCE does
// whose own interface was down (docs/verbs.md).
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "lib/transport/limits.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Seconds;

class StuckQueuePair final : public verbs::QueuePair {
 public:
  StuckQueuePair(std::unique_ptr<verbs::QueuePair> well, const bool& stuck) : well_(std::move(well)), stuck_(stuck) {}

  verbs::QueuePair& well() { return *well_; }

  uint32_t number() const override { return well_->number(); }
  verbs::QueuePairState state() const override { return well_->state(); }
  verbs::PostResult PostSend(absl::Span<const verbs::SendRequest> requests) override {
    if (stuck_) return {requests.size(), absl::OkStatus()};
    return well_->PostSend(requests);
  }
  verbs::PostResult PostReceive(absl::Span<const verbs::ReceiveRequest> requests) override {
    return well_->PostReceive(requests);
  }
  absl::Status Modify(verbs::QueuePairState state, const verbs::QueuePairAttributes& attributes) override {
    return well_->Modify(state, attributes);
  }

 private:
  const std::unique_ptr<verbs::QueuePair> well_;
  const bool& stuck_;
};

class StuckDomain final : public verbs::ProtectionDomain {
 public:
  StuckDomain(std::unique_ptr<verbs::ProtectionDomain> well, const bool& stuck)
      : well_(std::move(well)), stuck_(stuck) {}

  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> RegisterMemory(absl::Span<uint8_t> memory,
                                                                      verbs::Access access) override {
    return well_->RegisterMemory(memory, access);
  }
  absl::StatusOr<std::unique_ptr<verbs::MemoryWindow>> CreateMemoryWindow() override {
    return well_->CreateMemoryWindow();
  }
  absl::StatusOr<std::unique_ptr<verbs::QueuePair>> CreateQueuePair(const verbs::QueuePairOptions& options) override {
    auto made = well_->CreateQueuePair(options);
    if (!made.ok()) return made.status();
    return std::make_unique<StuckQueuePair>(*std::move(made), stuck_);
  }
  absl::StatusOr<std::unique_ptr<verbs::SharedReceiveQueue>> CreateSharedReceiveQueue(uint32_t depth,
                                                                                      uint32_t max_sges) override {
    return well_->CreateSharedReceiveQueue(depth, max_sges);
  }

 private:
  const std::unique_ptr<verbs::ProtectionDomain> well_;
  const bool& stuck_;
};

class StuckRequest final : public verbs::ConnectionRequest {
 public:
  explicit StuckRequest(std::unique_ptr<verbs::ConnectionRequest> well) : well_(std::move(well)) {}
  const verbs::Address& peer() const override { return well_->peer(); }
  absl::Span<const uint8_t> private_data() const override { return well_->private_data(); }
  absl::StatusOr<std::unique_ptr<verbs::Connection>> Accept(verbs::QueuePair& queue_pair,
                                                            const verbs::ConnectOptions& options,
                                                            verbs::ConnectionHandler handler) override {
    return well_->Accept(dynamic_cast<StuckQueuePair&>(queue_pair).well(), options, std::move(handler));
  }
  void Reject(absl::Span<const uint8_t> private_data) override { well_->Reject(private_data); }

 private:
  const std::unique_ptr<verbs::ConnectionRequest> well_;
};

class StuckDevice final : public verbs::Device, private verbs::ConnectionManager {
 public:
  StuckDevice(std::unique_ptr<verbs::Device> well, const bool& stuck) : well_(std::move(well)), stuck_(stuck) {}

  const std::string& name() const override { return well_->name(); }
  const verbs::Limits& limits() const override { return well_->limits(); }
  bool is_rdma() const override { return well_->is_rdma(); }
  const verbs::Address& address() const override { return well_->address(); }
  absl::StatusOr<std::unique_ptr<verbs::ProtectionDomain>> CreateProtectionDomain() override {
    auto made = well_->CreateProtectionDomain();
    if (!made.ok()) return made.status();
    return std::make_unique<StuckDomain>(*std::move(made), stuck_);
  }
  absl::StatusOr<std::unique_ptr<verbs::CompletionQueue>> CreateCompletionQueue(
      base::EventLoop& loop, uint32_t depth, std::function<void()> on_event) override {
    return well_->CreateCompletionQueue(loop, depth, std::move(on_event));
  }
  verbs::ConnectionManager& connection_manager() override { return *this; }
  std::unique_ptr<verbs::DeviceWatch> Watch(base::EventLoop& loop, verbs::DeviceEventHandler handler) override {
    return well_->Watch(loop, std::move(handler));
  }

 private:
  absl::StatusOr<std::unique_ptr<verbs::Listener>> Listen(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::RequestHandler handler) override {
    return well_->connection_manager().Listen(
        loop, address, [handler = std::move(handler)](std::unique_ptr<verbs::ConnectionRequest> request) {
          handler(std::make_unique<StuckRequest>(std::move(request)));
        });
  }
  absl::StatusOr<std::unique_ptr<verbs::Connection>> Connect(verbs::QueuePair& queue_pair,
                                                             const verbs::Address& address,
                                                             const verbs::ConnectOptions& options,
                                                             verbs::ConnectionHandler handler) override {
    return well_->connection_manager().Connect(dynamic_cast<StuckQueuePair&>(queue_pair).well(), address, options,
                                               std::move(handler));
  }

  const std::unique_ptr<verbs::Device> well_;
  const bool& stuck_;
};

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
      return std::make_unique<StuckDevice>(std::move(device), stuck);
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

TEST_P(StuckDeviceTest, WhoHasWorkLeavesItsConnectionForANewOne) {
  ASSERT_EQ(Pull(), absl::OkStatus());
  puller_is_stuck_ = true;
  const base::Time began = world_.scheduler.Now();
  absl::Status status;
  do {
    status = Pull();
    ASSERT_FALSE(status.ok());
  } while (!absl::IsUnavailable(status) && world_.scheduler.Now() < began + Seconds(60));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_GT(world_.scheduler.Now(), began + kPatience) << "a device that is only slow has its time";
  EXPECT_LT(world_.scheduler.Now(), began + kPatience * 2);
  puller_is_stuck_ = false;
  EXPECT_EQ(Pull(), absl::OkStatus());
  EXPECT_EQ(puller_->endpoint->counters().connections_opened, 2u);
  world_.ExpectClean();
}

// Whose answers are lost has no work any more, and only itself can see it.
TEST_P(StuckDeviceTest, WhoHasAnsweredLeavesTheConnectionToo) {
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
