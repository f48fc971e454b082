#include "lib/cli/doctor/ping_pong.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "sim/network/loopback_fabric.h"
#include "tests/cli/doctor/sick_device.h"

namespace tokamak::cli::doctor {
namespace {

using Steps = std::vector<std::string>;

constexpr base::Duration kShort = base::Milliseconds(200);  // for what never comes

class PingPongTest : public testing::Test {
 protected:
  PingPongTest() : device_(Open("10.0.0.1")), other_(Open("10.0.0.2")) { plan_.rounds = 20; }

  std::unique_ptr<verbs::soft::SoftDevice> Open(const std::string& address) {
    verbs::soft::DeviceOptions options;
    options.address = *verbs::Address::Parse(address);
    return *verbs::soft::OpenSoftDevice(loop_, fabric_, trace_, options);
  }

  std::unique_ptr<PingPongResponder> Listen(verbs::Device& device) {
    auto responder = PingPongResponder::Start(loop_, device);
    EXPECT_TRUE(responder.ok()) << responder.status();
    return responder.ok() ? *std::move(responder) : nullptr;
  }

  absl::StatusOr<PingPongNumbers> Run(verbs::Device& device, const verbs::Address& service) {
    steps_.clear();
    return RunPingPong(loop_, device, service, plan_, [this](absl::string_view step) { steps_.emplace_back(step); });
  }

  os::EpollLoop loop_;
  sim::LoopbackFabric fabric_;
  base::NoTrace trace_;
  PingPongPlan plan_;
  Steps steps_;
  std::unique_ptr<verbs::soft::SoftDevice> device_;
  std::unique_ptr<verbs::soft::SoftDevice> other_;
};

TEST(MeasuringDetectionTest, OneProcessorIsNotSpunOn) {
  EXPECT_EQ(MeasuringDetection(1).mode, os::Detection::Mode::kEvent);
  EXPECT_EQ(MeasuringDetection(2).mode, os::Detection::Mode::kAdaptive);
}

// On a thread of its own, which may run on one processor only.
TEST(MeasuringDetectionTest, TheProcessorsAreThoseThatThisThreadMayUse) {
  unsigned int usable = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    usable = UsableProcessors();
  }).join();
  EXPECT_EQ(usable, 1u);
}

TEST_F(PingPongTest, ADeviceTalksToItselfAndIsMeasured) {
  const auto responder = Listen(*device_);
  const auto numbers = Run(*device_, responder->service());
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_GT(numbers->half_round_trip, base::Duration());
  EXPECT_GT(numbers->connected_in, base::Duration());
  EXPECT_GT(numbers->write_rate, 0);
  EXPECT_GT(numbers->read_rate, 0);
  EXPECT_GE(numbers->rounds, 1u);
  EXPECT_LE(numbers->rounds, 20u);
  EXPECT_GE(numbers->batches, 1u);
  EXPECT_EQ(numbers->path_mtu, 4096u);
  EXPECT_EQ(steps_, (Steps{"domain", "completion queue", "memory", "queue pair", "connect", "send", "write", "read",
                           "compare"}));
}

TEST_F(PingPongTest, TwoDevicesTalkAndOneCallerFollowsAnother) {
  const auto responder = Listen(*other_);
  for (int caller = 0; caller < 3; ++caller) {
    const auto numbers = Run(*device_, responder->service());
    EXPECT_TRUE(numbers.ok()) << numbers.status();
  }
}

TEST_F(PingPongTest, NobodyWhoListensIsAnErrorInTheStepConnect) {
  plan_.patience = kShort;
  verbs::Address nobody = other_->address();
  nobody.port = 4711;
  const auto numbers = Run(*device_, nobody);
  EXPECT_FALSE(numbers.ok());
  EXPECT_EQ(steps_.back(), "connect");
}

TEST_F(PingPongTest, AStrangerWhoAcceptsIsNoResponder) {
  std::unique_ptr<verbs::ProtectionDomain> domain = *other_->CreateProtectionDomain();
  std::unique_ptr<verbs::CompletionQueue> queue = *other_->CreateCompletionQueue(loop_, 16, [] {});
  verbs::QueuePairOptions options;
  options.send_queue = options.receive_queue = queue.get();
  options.max_send_requests = options.max_receive_requests = 4;
  std::unique_ptr<verbs::QueuePair> queue_pair = *domain->CreateQueuePair(options);
  std::unique_ptr<verbs::Connection> connection;
  const auto accept = [&](std::unique_ptr<verbs::ConnectionRequest> request) {
    connection = *request->Accept(*queue_pair, {}, [](const verbs::ConnectionEvent&) {});
  };
  const auto listener = *other_->connection_manager().Listen(loop_, other_->address(), accept);
  const auto numbers = Run(*device_, listener->address());
  EXPECT_EQ(numbers.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(numbers.status().message(), "no tok doctor")) << numbers.status();
}

TEST_F(PingPongTest, RequestsThatNeverCompleteEndAtTheDeadlineInTheirStep) {
  plan_.patience = kShort;
  const auto responder = Listen(*device_);
  const std::vector<std::pair<verbs::Opcode, std::string>> kinds = {
      {verbs::Opcode::kSend, "send"}, {verbs::Opcode::kWrite, "write"}, {verbs::Opcode::kRead, "read"}};
  for (const auto& [opcode, step] : kinds) {
    Sickness sickness;
    sickness.swallowed = opcode;
    SickDevice sick(*device_, sickness);
    const auto numbers = Run(sick, responder->service());
    EXPECT_EQ(numbers.status().code(), absl::StatusCode::kDeadlineExceeded) << step << ": " << numbers.status();
    EXPECT_EQ(steps_.back(), step);
  }
}

TEST_F(PingPongTest, BytesThatArriveDamagedAreFound) {
  const auto responder = Listen(*device_);
  Sickness sickness;
  sickness.damaged = verbs::Opcode::kWrite;
  SickDevice sick(*device_, sickness);
  const auto numbers = Run(sick, responder->service());
  EXPECT_EQ(numbers.status().code(), absl::StatusCode::kDataLoss) << numbers.status();
  EXPECT_EQ(steps_.back(), "compare");
}

TEST_F(PingPongTest, AQueuePairThatCannotBeMadeIsAnErrorInItsStep) {
  Sickness sickness;
  sickness.refused = "queue pair";
  SickDevice sick(*device_, sickness);
  const auto responder = Listen(*device_);
  const auto numbers = Run(sick, responder->service());
  EXPECT_EQ(numbers.status().message(), "ibv_create_qp: Invalid argument");
  EXPECT_EQ(steps_.back(), "queue pair");
}

TEST_F(PingPongTest, AResponderThatGoesMidwayIsNoticed) {
  plan_.patience = base::Seconds(10);  // longer than the retries of a SEND to nobody
  plan_.rounds = 1000000;
  plan_.spend = base::Seconds(30);
  auto responder = Listen(*other_);
  const verbs::Address service = responder->service();
  const base::Timer leave = loop_.RunAfter(base::Milliseconds(100), [&] { responder.reset(); });
  const auto numbers = Run(*device_, service);
  EXPECT_FALSE(numbers.ok());
  EXPECT_EQ(steps_.back(), "send");
}

}  // namespace
}  // namespace tokamak::cli::doctor
