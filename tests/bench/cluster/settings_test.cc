#include "tests/bench/cluster/settings.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::bench {
namespace {

ParsedSettings Parse(const std::vector<std::string>& flags) {
  std::vector<const char*> argv = {"cluster"};
  for (const std::string& flag : flags) argv.push_back(flag.c_str());
  return ParseSettings(static_cast<int>(argv.size()), argv.data());
}

std::vector<std::string> Names(const std::vector<std::string>& flags) {
  std::vector<std::string> names;
  for (const Contender& contender : ContendersOf(Parse(flags).settings)) {
    names.push_back(contender.protocol + " " + contender.variant);
  }
  return names;
}

using Strings = std::vector<std::string>;

TEST(SettingsTest, WithoutFlagsEverythingIsCompared) {
  const ParsedSettings parsed = Parse({});
  ASSERT_TRUE(parsed.run) << parsed.text;
  EXPECT_EQ(parsed.settings.patterns.size(), 4u);
  EXPECT_EQ(Names({}),
            (Strings{"eager arena", "read arena", "write arena", "policy arena", "socket original", "socket tuned"}));
}

TEST(SettingsTest, ListsAreReadOnce) {
  const ParsedSettings parsed = Parse({"--sizes", "1GiB,64,64", "--patterns", "all-to-all,one-to-one,all-to-all"});
  ASSERT_TRUE(parsed.run) << parsed.text;
  EXPECT_EQ(parsed.settings.sizes, (std::vector<uint64_t>{1 << 30, 64}));
  EXPECT_EQ(parsed.settings.patterns, (std::vector<Pattern>{Pattern::kAllToAll, Pattern::kOneToOne}));
}

TEST(SettingsTest, ContendersFollowTheNamedProtocols) {
  EXPECT_EQ(Names({"--protocols", "socket-tuned,read", "--registration", "on_demand"}),
            (Strings{"read on_demand", "socket tuned"}));
  EXPECT_EQ(Names({"--protocols", "socket,socket-original"}), (Strings{"socket original", "socket tuned"}));
}

TEST(SettingsTest, MistakesAreReportedInOneLine) {
  const struct {
    Strings flags;
    const char* part;
  } wrong[] = {
      {{"--patterns", "some"}, "--patterns: unknown pattern 'some'"},
      {{"--sizes", "0"}, "--sizes: '0' is not within 1 B and 1 GiB"},
      {{"--sizes", "2GiB"}, "--sizes: '2GiB'"},
      {{"--sizes", "many"}, "--sizes: "},
      {{"--protocols", "rdma"}, "--protocols"},
      {{"--memory", "lots"}, "--memory: "},
      {{"--registration", "never"}, "--registration"},
      {{"--budget", "soon"}, "--budget: "},
      {{"--least-repetitions", "5"}, "--least-repetitions"},
      {{"--repetitions", "9"}, "--repetitions is below --least-repetitions"},
      {{"--what"}, "--what"},
  };
  for (const auto& one : wrong) {
    const ParsedSettings parsed = Parse(one.flags);
    EXPECT_FALSE(parsed.run) << one.part;
    EXPECT_EQ(parsed.exit_code, 2) << one.part;
    EXPECT_EQ(std::count(parsed.text.begin(), parsed.text.end(), '\n'), 1) << parsed.text;
    EXPECT_NE(parsed.text.find(one.part), std::string::npos) << parsed.text;
  }
}

TEST(SettingsTest, HelpNamesEveryPattern) {
  const ParsedSettings parsed = Parse({"--help"});
  EXPECT_FALSE(parsed.run);
  EXPECT_EQ(parsed.exit_code, 0);
  for (const char* word : {"one-to-one", "one-to-many", "many-to-one", "all-to-all", "socket-original"}) {
    EXPECT_NE(parsed.text.find(word), std::string::npos) << word;
  }
}

TEST(SettingsTest, MemoryDefaultsToTheNeedOfTheCases) {
  const Settings needs = Parse({"--sizes", "1GiB", "--patterns", "all-to-all"}).settings;
  const auto plan = MakePlan(needs, 4);
  ASSERT_TRUE(plan.ok());
  EXPECT_GT(MemoryOfARank(needs, *plan, 4), uint64_t{6} << 30);
  EXPECT_LT(MemoryOfARank(needs, *plan, 4), uint64_t{7} << 30);
  const Settings given = Parse({"--sizes", "1MiB", "--memory", "100MiB"}).settings;
  EXPECT_EQ(MemoryOfARank(given, *MakePlan(given, 4), 4), uint64_t{100} << 20);
}

TEST(SettingsTest, TooLittleMemoryIsRefusedWithTheNeededSize) {
  const Settings settings = Parse({"--sizes", "1GiB", "--patterns", "one-to-one", "--memory", "1GiB"}).settings;
  const auto plan = MakePlan(settings, 2);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"--memory", "1 GiB", "give", "--sizes"}) {
    EXPECT_NE(plan.status().message().find(part), absl::string_view::npos) << plan.status();
  }
}

TEST(SettingsTest, OneRankIsTooFew) {
  const auto plan = MakePlan(Parse({}).settings, 1);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(plan.status().message().find("-np 2"), absl::string_view::npos);
}

}  // namespace
}  // namespace tokamak::bench
