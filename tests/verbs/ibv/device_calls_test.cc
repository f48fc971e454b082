// A device's calls of libibverbs, and the errors when its provider refuses.
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/ibv/device.h"
#include "tests/verbs/ibv/recording_verbs.h"

namespace tokamak::verbs::ibv {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class DeviceCallsTest : public testing::Test {
 protected:
  DeviceCallsTest() {
    RecordingVerbs::Reset();
    auto device = OpenIbvDevice(Options());
    EXPECT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    domain_ = *device_->CreateProtectionDomain();
    queue_ = *device_->CreateCompletionQueue(loop_, 16, [] {});
    RecordingVerbs::Reset();
  }

  static DeviceOptions Options() {
    DeviceOptions options;
    options.name.device = RecordingVerbs::kDevice;
    options.exchange = Exchange::kTcp;
    options.tcp_address = *Address::Parse("127.0.0.1");
    return options;
  }

  absl::StatusOr<std::unique_ptr<QueuePair>> MakeQueuePair(ProtectionDomain& domain) {
    QueuePairOptions options;
    options.send_queue = options.receive_queue = queue_.get();
    return domain.CreateQueuePair(options);
  }

  std::unique_ptr<MemoryRegion> Register(Access access = kLocalWrite) {
    return *domain_->RegisterMemory(absl::MakeSpan(memory_), access);
  }

  os::EpollLoop loop_;
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(4096);
  std::unique_ptr<Device> device_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<CompletionQueue> queue_;
};

TEST_F(DeviceCallsTest, MemoryThatTheDeviceDoesNotReleaseIsUnreachable) {
  const auto other_domain = *device_->CreateProtectionDomain();
  auto queue_pair = *MakeQueuePair(*domain_);
  const auto of_another_domain = *MakeQueuePair(*other_domain);
  auto region = Register();
  RecordingVerbs::Get().deregistration_error = EBUSY;
  region.reset();
  EXPECT_EQ(queue_pair->state(), QueuePairState::kError);
  EXPECT_EQ(of_another_domain->state(), QueuePairState::kInit);
  const auto next = MakeQueuePair(*domain_);
  EXPECT_TRUE(absl::IsUnavailable(next.status())) << next.status();
  EXPECT_THAT(std::string(next.status().message()), HasSubstr("restart"));
  EXPECT_EQ(RecordingVerbs::Get().regions, 1);
}

TEST_F(DeviceCallsTest, MemoryReleasedAfterAllLetsQueuePairsBeMadeAgain) {
  auto region = Register();
  RecordingVerbs::Get().deregistration_error = EBUSY;
  region.reset();
  RecordingVerbs::Get().deregistration_error = 0;
  const auto next = MakeQueuePair(*domain_);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*next)->state(), QueuePairState::kInit);
  EXPECT_EQ(RecordingVerbs::Get().regions, 0);
}

TEST_F(DeviceCallsTest, AWindowThatIsNotTakenBackEndsItsQueuePairsToo) {
  const auto queue_pair = *MakeQueuePair(*domain_);
  auto window = *domain_->CreateMemoryWindow();
  RecordingVerbs::Get().window_error = EBUSY;
  window.reset();
  EXPECT_EQ(queue_pair->state(), QueuePairState::kError);
  RecordingVerbs::Get().window_error = 0;
  EXPECT_TRUE(MakeQueuePair(*domain_).ok());
}

TEST_F(DeviceCallsTest, CompletionQueuesTakeTheVectorsInTurn) {
  std::vector<std::unique_ptr<CompletionQueue>> queues;
  for (int i = 0; i < RecordingVerbs::kVectors; ++i) {
    queues.push_back(*device_->CreateCompletionQueue(loop_, 16, [] {}));
  }
  EXPECT_THAT(RecordingVerbs::Get().completion_vectors, UnorderedElementsAre(0, 1, 2, 3));
}

TEST_F(DeviceCallsTest, ACompletionQueueGrowsIfTheProviderAllowsIt) {
  EXPECT_TRUE(queue_->Resize(64).ok());
  EXPECT_EQ(queue_->depth(), 64u);
  EXPECT_TRUE(absl::IsInvalidArgument(queue_->Resize(device_->limits().max_completions + 1)));
  for (const int error : {ENOSYS, EOPNOTSUPP, -ENOSYS}) {
    RecordingVerbs::Get().resize_error = error;
    EXPECT_TRUE(absl::IsUnimplemented(queue_->Resize(128))) << error;
  }
  RecordingVerbs::Get().resize_error = ENOMEM;
  const absl::Status short_of_memory = queue_->Resize(128);
  EXPECT_FALSE(short_of_memory.ok() || absl::IsUnimplemented(short_of_memory)) << short_of_memory;
  EXPECT_EQ(queue_->depth(), 64u);
}

TEST_F(DeviceCallsTest, RelaxedOrderingIsRequestedIfTheOwnerAllowsIt) {
  const auto strict = Register(kLocalWrite);
  const auto relaxed = Register(kLocalWrite | kRelaxedOrdering);
  EXPECT_THAT(RecordingVerbs::Get().accesses,
              ElementsAre(IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING));
}

TEST_F(DeviceCallsTest, ARefusalOfRelaxedOrderingIsLoggedOnceAndAccepted) {
  RecordingVerbs::Get().refused_access = IBV_ACCESS_RELAXED_ORDERING;
  testing::internal::CaptureStderr();
  const auto first = Register(kLocalWrite | kRelaxedOrdering);
  const auto second = Register(kLocalWrite | kRelaxedOrdering);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(RecordingVerbs::Get().accesses, ElementsAre(IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE));
  const size_t said = log.find("without relaxed ordering");
  EXPECT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find("without relaxed ordering", said + 1), std::string::npos) << log;
}

TEST_F(DeviceCallsTest, AtomicsAreNeverRelaxed) {
  const auto refused = domain_->RegisterMemory(absl::MakeSpan(memory_), kLocalWrite | kRemoteAtomic | kRelaxedOrdering);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
}

TEST_F(DeviceCallsTest, AGoneDeviceHasReleasedItsMemory) {
  const auto queue_pair = *MakeQueuePair(*domain_);
  for (const int gone : {EIO, ENODEV}) {
    auto region = Register();
    RecordingVerbs::Get().deregistration_error = gone;
    region.reset();
    EXPECT_EQ(queue_pair->state(), QueuePairState::kInit);
  }
  RecordingVerbs::Get().deregistration_error = 0;
}

TEST_F(DeviceCallsTest, PacketsAreNoLargerThanEitherSidesPathMtu) {
  DeviceOptions options = Options();
  options.max_path_mtu = 1024;  // the port's is 4096
  const auto narrow = OpenIbvDevice(options);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  const auto narrow_domain = *(*narrow)->CreateProtectionDomain();
  const auto narrow_queue = *(*narrow)->CreateCompletionQueue(loop_, 16, [] {});
  QueuePairOptions narrow_options;
  narrow_options.send_queue = narrow_options.receive_queue = narrow_queue.get();
  const auto active = *narrow_domain->CreateQueuePair(narrow_options);
  const auto passive = *MakeQueuePair(*domain_);
  RecordingVerbs::Get().path_mtus.clear();

  int up = 0;
  const auto handler = [&up](const ConnectionEvent& event) {
    EXPECT_EQ(event.kind, ConnectionEvent::Kind::kEstablished) << event.status;
    EXPECT_EQ(event.path_mtu, 1024u);
    ++up;
  };
  std::unique_ptr<Connection> accepted;
  const auto listener = *device_->connection_manager().Listen(
      loop_, *Address::Parse("127.0.0.1:0"),
      [&](std::unique_ptr<ConnectionRequest> request) { accepted = *request->Accept(*passive, {}, handler); });
  const auto connection = *(*narrow)->connection_manager().Connect(*active, listener->address(), {}, handler);
  EXPECT_TRUE(loop_.RunUntil([&] { return up == 2; }, loop_.Now() + base::Seconds(20)));
  EXPECT_THAT(RecordingVerbs::Get().path_mtus, ElementsAre(IBV_MTU_1024, IBV_MTU_1024));
}

TEST_F(DeviceCallsTest, AnInvalidPathMtuIsRefused) {
  DeviceOptions options = Options();
  options.max_path_mtu = 1500;
  EXPECT_TRUE(absl::IsInvalidArgument(OpenIbvDevice(options).status()));
}

}  // namespace
}  // namespace tokamak::verbs::ibv
