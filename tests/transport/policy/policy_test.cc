// The table that picks a protocol by size.
#include "lib/transport/policy/policy.h"

#include "gtest/gtest.h"

namespace tokamak::transport {
namespace {

TEST(PolicyTest, PicksTheFirstStepThatReachesTheSize) {
  const auto policy = Policy::Parse("eager:32KiB,read:1MiB,write");
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->Choose(0), Protocol::kEager);
  EXPECT_EQ(policy->Choose(32 * 1024), Protocol::kEager);
  EXPECT_EQ(policy->Choose(32 * 1024 + 1), Protocol::kRead);
  EXPECT_EQ(policy->Choose(1 << 20), Protocol::kRead);
  EXPECT_EQ(policy->Choose((1 << 20) + 1), Protocol::kWrite);
  EXPECT_EQ(policy->Choose(UINT64_MAX), Protocol::kWrite);
}

TEST(PolicyTest, TheBuiltInPolicyIsEagerThenRead) {
  EXPECT_EQ(Policy().Choose(100), Protocol::kEager);
  EXPECT_EQ(Policy().Choose(100 << 20), Protocol::kRead);
}

TEST(PolicyTest, EachKindOfDeviceHasAPolicy) {
  EXPECT_EQ(Policy::BuiltIn(DeviceKind::kSoftware).ToString(), "eager:16KiB,write");
  EXPECT_EQ(Policy::BuiltIn(DeviceKind::kKernel).ToString(), Policy().ToString());
  EXPECT_EQ(Policy::BuiltIn(DeviceKind::kHardware).ToString(), "eager:15KiB,read");
}

TEST(PolicyTest, TextSurvivesTheRoundTrip) {
  for (const char* text :
       {"eager", "read", "eager:32KiB,read", "eager:1000,read:3MiB,write", "eager:0,write:2GiB,read"}) {
    const auto policy = Policy::Parse(text);
    ASSERT_TRUE(policy.ok()) << policy.status();
    EXPECT_EQ(policy->ToString(), text);
  }
}

TEST(PolicyTest, MistakesAreReported) {
  const auto says = [](const char* text, const char* what) {
    const auto policy = Policy::Parse(text);
    EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(policy.status().message().find(what), absl::string_view::npos) << text << ": " << policy.status();
  };
  says("", "no protocol");
  says("auto", "no protocol");
  says("quick", "'quick'");
  says("eager:much,read", "much");
  says("eager:,read", "''");
  says("eager:-1,read", "-1");
  says("eager:32KiB", "above 32768");
  says("eager:32KiB,read:32KiB,write", "step 2");
  says("eager,read", "step 2");
  says("eager:99999999999GiB,read", "99999999999GiB");
}

TEST(PolicyTest, AStepMustNameAProtocol) {
  EXPECT_FALSE(Policy::FromSteps({{UINT64_MAX, Protocol::kAuto}}).ok());
  EXPECT_FALSE(Policy::FromSteps({}).ok());
  EXPECT_TRUE(Policy::FromSteps({{UINT64_MAX, Protocol::kWrite}}).ok());
}

}  // namespace
}  // namespace tokamak::transport
