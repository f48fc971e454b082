#include "sim/costs/costed_device.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/bytes.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/fabric/topology/generators.h"
#include "sim/time/sim_loop.h"

namespace tokamak::sim {
namespace {

using base::Duration;
using base::Nanoseconds;

HostCosts OddCosts() {
  HostCosts costs;
  costs.post = Nanoseconds(7);
  costs.completion = Nanoseconds(11);
  costs.registration = Nanoseconds(1000);
  costs.registration_page = Nanoseconds(13);
  costs.deregistration = Nanoseconds(500);
  costs.deregistration_page = Nanoseconds(3);
  costs.copy_bandwidth = 2'000'000'000;
  return costs;
}

class CostedDeviceTest : public testing::Test {
 protected:
  CostedDeviceTest() : network_(scheduler_), loop_(scheduler_), memory_(8 * kHostPage) {
    fabric_ = *SwitchedFabric::Build(network_, Star({}, 2), {}, nullptr);
    verbs::soft::DeviceOptions options;
    options.address = *verbs::Address::Parse("10.0.0.1");
    device_ = WithCosts(*verbs::soft::OpenSoftDevice(network_, *fabric_, trace_, options), OddCosts(),
                        [this] { return scheduler_.running(); });
    domain_ = *device_->CreateProtectionDomain();
  }

  // Returns the time that `call` spends in a task of the host's loop.
  Duration Spent(const std::function<void()>& call) {
    const Duration before = loop_.spent();
    const base::Timer task = loop_.Post(call);
    scheduler_.RunUntilIdle();
    return loop_.spent() - before;
  }

  uint8_t* memory() { return memory_.data(); }

  Scheduler scheduler_;
  SimLoop network_;
  SimLoop loop_;
  base::TraceHash trace_;
  std::unique_ptr<SwitchedFabric> fabric_;
  std::vector<uint8_t> memory_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
};

TEST_F(CostedDeviceTest, EachRequestAndEachCompletionCostsTimeOfItsLoop) {
  auto completions = *device_->CreateCompletionQueue(loop_, 16, [] {});
  verbs::QueuePairOptions options;
  options.send_queue = options.receive_queue = completions.get();
  auto queue_pair = *domain_->CreateQueuePair(options);
  const std::array<verbs::ReceiveRequest, 3> receives = {};
  EXPECT_TRUE(Spent([&] { EXPECT_TRUE(queue_pair->PostReceive(receives).ok()); }) == Nanoseconds(3 * 7));

  const std::array<verbs::SendRequest, 2> sends = {};
  ASSERT_TRUE(queue_pair->Modify(verbs::QueuePairState::kError).ok());
  EXPECT_TRUE(Spent([&] { EXPECT_TRUE(queue_pair->PostSend(sends).ok()); }) == Nanoseconds(2 * 7));

  std::array<verbs::Completion, 16> flushed;
  EXPECT_TRUE(Spent([&] { EXPECT_EQ(completions->Poll(absl::MakeSpan(flushed)), 5u); }) == Nanoseconds(5 * 11));
  EXPECT_TRUE(Spent([&] { EXPECT_EQ(completions->Poll(absl::MakeSpan(flushed)), 0u); }) == Duration());
}

TEST_F(CostedDeviceTest, ARegionCostsByItsPagesWhereverItLies) {
  std::unique_ptr<verbs::MemoryRegion> region;
  const auto reg = [&](uint8_t* begin, size_t size) {
    return Spent([&] { region = *domain_->RegisterMemory({begin, size}, verbs::kLocalWrite); });
  };
  const auto drop = [&] { return Spent([&] { region.reset(); }); };
  EXPECT_TRUE(reg(memory(), 1) == Nanoseconds(1000 + 13));
  EXPECT_TRUE(drop() == Nanoseconds(500 + 3));
  EXPECT_TRUE(reg(memory(), 2 * kHostPage) == Nanoseconds(1000 + 2 * 13));
  EXPECT_TRUE(drop() == Nanoseconds(500 + 2 * 3));
  EXPECT_TRUE(reg(memory(), 2 * kHostPage + 1) == Nanoseconds(1000 + 3 * 13));
  EXPECT_TRUE(drop() == Nanoseconds(500 + 3 * 3));
  EXPECT_TRUE(reg(memory() + 1, 2 * kHostPage) == Nanoseconds(1000 + 2 * 13));
  EXPECT_TRUE(drop() == Nanoseconds(500 + 2 * 3));
}

TEST_F(CostedDeviceTest, SettingUpAWorldTakesNoTimeOfIt) {
  const base::Time before = scheduler_.Now();
  auto region = *domain_->RegisterMemory({memory(), kHostPage}, verbs::kLocalWrite);
  region.reset();
  EXPECT_TRUE(scheduler_.Now() == before);
  EXPECT_TRUE(loop_.spent() == Duration());
}

TEST_F(CostedDeviceTest, CopiesTakeTheTimeSetForTheHostsLoops) {
  loop_.SetCopySpeed(CopySpeedOf(OddCosts()));
  EXPECT_TRUE(Spent([&] { base::Copy(loop_, memory(), memory() + kHostPage, 4096); }) == Nanoseconds(2048));
  loop_.SetCopySpeed(CopySpeedOf({}));
  EXPECT_TRUE(Spent([&] { base::Copy(loop_, memory(), memory() + kHostPage, 4096); }) == Duration());
}

}  // namespace
}  // namespace tokamak::sim
