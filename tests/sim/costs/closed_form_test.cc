// The closed form of a pull agrees with the simulation: two hosts at one switch, the transport and
// the NIC as they are.
#include "sim/costs/closed_form.h"

#include <cstdint>
#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "sim/costs/presets.h"
#include "tests/sim/costs/pull_rig.h"

namespace tokamak::sim {
namespace {

using transport::Protocol;

constexpr struct {
  PullBy by;
  Protocol protocol;
} kProtocols[] = {
    {PullBy::kEager, Protocol::kEager}, {PullBy::kRead, Protocol::kRead}, {PullBy::kWrite, Protocol::kWrite}};

// Pulls of these sizes, by each protocol, take what the formula says, to half a percent.
template <typename Sizes>
void ExpectAgreement(const PullRigOptions& options, const PullPath& path, const Sizes& sizes) {
  PullRig rig(options);
  rig.TimeOf(Protocol::kRead, 1);  // connects
  for (const auto& one : kProtocols) {
    for (const uint64_t size : sizes) {
      const double simulated = rig.TimeOf(one.protocol, size).seconds();
      EXPECT_NEAR(PullTime(one.by, size, options.costs, path).seconds(), simulated, simulated / 200)
          << transport::ToString(one.protocol) << ", " << size << " B";
    }
  }
  EXPECT_EQ(rig.packets_retransmitted(), 0u);
}

class PresetTest : public testing::TestWithParam<std::tuple<std::string, uint32_t>> {
 protected:
  PresetTest() {
    options_.costs = ShippedPresets().at(std::get<0>(GetParam()));
    path_.mtu = options_.mtu = std::get<1>(GetParam());
  }
  PullRigOptions options_;
  PullPath path_;
};

// Around a slot's end, a task's copies and a chunk's end, too.
TEST_P(PresetTest, AgreesFrom64BytesTo64MiB) {
  constexpr uint64_t kSizes[] = {64,        1000,      4096,    16 << 10,  16'320,        16'321,
                                 100'000,   261'120,   261'121, 256 << 10, (1 << 20) - 1, 1 << 20,
                                 1'048'577, 3'000'001, 8 << 20, 9 << 20,   16 << 20,      64 << 20};
  options_.most = 64 << 20;
  ExpectAgreement(options_, path_, kSizes);
}

TEST_P(PresetTest, AgreesWhereEachPullRegistersItsMemory) {
  constexpr uint64_t kSizes[] = {64, 4096, 4097, 100'000, 1 << 20, 4 << 20};
  options_.most = 4 << 20;
  options_.on_demand = true;
  path_.arena = false;
  ExpectAgreement(options_, path_, kSizes);
}

INSTANTIATE_TEST_SUITE_P(All, PresetTest,
                         testing::Combine(testing::Values("zero", "softroce", "cx6-200g"),
                                          testing::Values(1024u, 4096u)),
                         [](const auto& one) {
                           std::string name = std::get<0>(one.param) + "_" + std::to_string(std::get<1>(one.param));
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// As docs/simulation.md works them out.
TEST(ClosedFormTest, ThreeValuesByHand) {
  const HostCosts& costs = ShippedPresets().at("cx6-200g");
  const auto nanoseconds = [&](PullBy by, uint64_t size) { return PullTime(by, size, costs, {}).seconds() * 1e9; };
  EXPECT_NEAR(nanoseconds(PullBy::kEager, 4096), 6222.152, 0.005);
  EXPECT_NEAR(nanoseconds(PullBy::kRead, 64 << 10), 14347.68, 0.005);
  EXPECT_NEAR(nanoseconds(PullBy::kWrite, 1 << 20), 90581.04, 0.005);
}

// Not only the sum is right: no cost hides behind another.
TEST(ClosedFormTest, EachFigureCountsByItself) {
  constexpr base::Duration HostCosts::*kTimes[] = {&HostCosts::post,           &HostCosts::completion,
                                                   &HostCosts::registration,   &HostCosts::registration_page,
                                                   &HostCosts::deregistration, &HostCosts::deregistration_page};
  constexpr uint64_t kSizes[] = {64, 100'000, 3'000'001};
  PullRigOptions options;
  options.most = 4 << 20;
  for (base::Duration HostCosts::*time : kTimes) {
    for (const bool on_demand : {false, true}) {
      options.costs = HostCosts();
      options.costs.*time = base::Nanoseconds(3'456);
      options.on_demand = on_demand;
      PullPath path;
      path.arena = !on_demand;
      ExpectAgreement(options, path, kSizes);
    }
  }
  options.costs = HostCosts();
  options.costs.copy_bandwidth = 1'000'000'000;
  ExpectAgreement(options, {}, kSizes);
}

TEST(ClosedFormTest, AgreesOnOtherCables) {
  constexpr uint64_t kSizes[] = {64, 100'000, 3'000'001};
  for (const uint32_t gigabits : {25u, 200u, 400u}) {
    PullRigOptions options;
    options.costs = ShippedPresets().at("cx6-200g");
    options.network.host = {Rate::Gigabits(gigabits), base::Nanoseconds(300)};
    options.most = 4 << 20;
    PullPath path;
    path.picoseconds_per_byte = 8000 / gigabits;
    path.delay = base::Nanoseconds(300);
    ExpectAgreement(options, path, kSizes);
  }
}

}  // namespace
}  // namespace tokamak::sim
