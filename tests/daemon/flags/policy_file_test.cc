// A policy in a file: it comes back as it was written, and mistakes are reported in one line.
#include "lib/daemon/flags/policy_file.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tokamak::daemon {
namespace {

using transport::kMaxPolicySteps;
using transport::Policy;
using transport::Protocol;

TEST(PolicyFileTest, APolicyComesBackAsItWasWritten) {
  PolicyFile file;
  file.policy = *Policy::Parse("eager:40KiB,read:1000000,write");
  PolicyMeasurement measured;
  measured.date = "2026-01-31T12:00:00Z";
  measured.puller = {"a", "soft:udp@127.0.0.1"};
  measured.holder = {"b", "ibv:mlx5_0"};
  measured.times = {{1024, {{{1e-6, 2e-6}, {3e-6}, {}}}}};
  measured.crossovers = {{Protocol::kEager, Protocol::kRead, 40960, 30000, 50000, 0.01}};
  file.measured = measured;
  const std::string text = FormatPolicyFile(file);
  const auto read = ParsePolicyFile(text);
  ASSERT_TRUE(read.ok()) << read.status() << "\n" << text;
  EXPECT_EQ(read->policy.ToString(), "eager:40KiB,read:1000000,write");
  ASSERT_TRUE(read->measured.has_value());
  EXPECT_EQ(read->measured->date, measured.date);
  EXPECT_EQ(read->measured->puller.node, "a");
  EXPECT_EQ(read->measured->puller.device, "soft:udp@127.0.0.1");
  EXPECT_EQ(read->measured->holder.device, "ibv:mlx5_0");
  for (const char* part : {"\"median_us\": 1.5", "\"samples\": 2", "\"least_bytes\": 30000", "\"loss\": 0.01"}) {
    EXPECT_TRUE(absl::StrContains(text, part)) << part << " is not in\n" << text;
  }
}

TEST(PolicyFileTest, PeopleMayWriteThePolicy) {
  const auto read = ParsePolicyFile(
      R"({"tokamak_policy": 1, "table": [{"up_to": "40KiB", "protocol": "eager"}, {"protocol": "read"}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->policy.ToString(), "eager:40KiB,read");
  EXPECT_FALSE(read->measured.has_value());
}

TEST(PolicyFileTest, MistakesAreReportedInOneLine) {
  const auto says = [](const std::string& text, const char* what) {
    const auto read = ParsePolicyFile(text);
    ASSERT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_TRUE(absl::StrContains(read.status().message(), what)) << text << ": " << read.status();
    EXPECT_FALSE(absl::StrContains(read.status().message(), "\n")) << read.status();
    EXPECT_LE(read.status().message().size(), 400u);
  };
  const auto table = [](const std::string& steps) {
    return absl::StrCat(R"({"tokamak_policy": 1, "table": )", steps, "}");
  };
  says("", "no JSON");
  says("{\n\"tokamak_policy\": 1,\n}", "no JSON: byte 24");
  says("\xff\xfe", "no JSON");
  says("[1e999]", "out of range");
  says("[]", "tok tune writes one");
  says("{}", "tok tune writes one");
  says(R"({"tokamak_policy": 2})", "version 1");
  says(R"({"tokamak_policy": "1"})", "version 1");
  says(R"({"tokamak_policy": 1})", "table: missing");
  says(R"({"tokamak_policy": 1, "table": [{"protocol": "read"}], "more": 1})", "more than");
  says(table("{}"), "no array");
  says(table("[]"), "without steps");
  says(table("[1]"), "step 1: no object");
  says(table(R"([{"protocol": "teleport"}])"), "'teleport'");
  says(table(R"([{"protocol": 1}])"), "give eager, read or write");
  says(table(R"([{"up_to": 1}])"), "give eager, read or write");
  says(table(R"([{"protocol": "read", "size": 1}])"), "up_to and protocol");
  says(table(R"([{"protocol": "eager"}, {"protocol": "read"}])"), "step 1: up_to: only the last");
  says(table(R"([{"up_to": -1, "protocol": "eager"}, {"protocol": "read"}])"), "step 1: up_to: give bytes");
  says(table(R"([{"up_to": 1.5, "protocol": "eager"}, {"protocol": "read"}])"), "give bytes");
  says(table(R"([{"up_to": "much", "protocol": "eager"}, {"protocol": "read"}])"), "much");
  says(table(R"([{"up_to": 9, "protocol": "eager"}, {"up_to": 9, "protocol": "read"}, {"protocol": "write"}])"),
       "step 2 of the policy ends at 9");
  says(table(R"([{"up_to": 9, "protocol": "eager"}])"), "sizes above 9");
  says(R"({"tokamak_policy": 1, "table": [{"protocol": "read"}], "measured": 1})", "measured: no object");
  says(R"({"tokamak_policy": 1, "table": [{"protocol": "read"}], "measured": {"date": 1}})", "measured.date");
  says(R"({"tokamak_policy": 1, "table": [{"protocol": "read"}], "measured": {"puller": {"node": []}}})",
       "measured.puller.node");
  says(absl::StrCat(table(R"([{"protocol": "read"}])"), std::string(kMaxPolicyFile, ' ')), "at most");
  std::string steps;
  for (size_t i = 1; i <= kMaxPolicySteps; ++i) absl::StrAppend(&steps, R"({"protocol": "read", "up_to": )", i, "},");
  says(table(absl::StrCat("[", steps, R"({"protocol": "write"}])")), "possible are 64");
  says(std::string(100'000, '['), "no JSON");
}

}  // namespace
}  // namespace tokamak::daemon
