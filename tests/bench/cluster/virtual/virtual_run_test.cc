// Whole runs on simulated hosts with costs, sockets among them.
#include "tests/bench/cluster/virtual/virtual_run.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sim/costs/presets.h"
#include "tests/bench/cluster/report.h"

namespace tokamak::bench {
namespace {

Settings Small() {
  Settings settings;
  settings.ranks = 3;
  settings.costs = "cx6-200g";
  settings.rate = "100Gb/s";
  settings.patterns = {Pattern::kOneToOne, Pattern::kAllToAll};
  settings.sizes = {64, 40'000};
  settings.protocols = {"eager", "read", "write", "policy", "socket"};
  settings.warm_up = 2;
  settings.stop.least = 6;
  settings.stop.most = 6;
  return settings;
}

class Outcome final {
 public:
  explicit Outcome(const Settings& settings) : ranks_(settings.ranks), contenders_(ContendersOf(settings)) {
    VirtualRunOptions options;
    options.settings = settings;
    options.costs = *sim::FindPreset(settings.costs, ".");
    options.rate = *sim::Rate::Parse(settings.rate);
    auto run = VirtualRun(options, *MakePlan(settings, settings.ranks)).Run(nullptr);
    EXPECT_TRUE(run.ok()) << run.status();
    if (run.ok()) results = *std::move(run);
  }

  const CaseResult& Of(Pattern pattern, uint64_t size, const std::string& protocol, const std::string& variant) const {
    const auto found = std::find_if(results.begin(), results.end(), [&](const CaseResult& one) {
      const Contender& contender = contenders_[one.what.contender];
      return one.what.pattern == pattern && one.what.size == size && contender.protocol == protocol &&
             contender.variant == variant;
    });
    CHECK(found != results.end()) << protocol << " " << variant;
    return *found;
  }
  std::string Csv() const { return Report({ranks_, ranks_, "m", "k", "c"}, contenders_, results).Csv(); }
  std::string NameOf(const CaseResult& result) const {
    return Report::Line(result, contenders_[result.what.contender]);
  }

  std::vector<CaseResult> results;

 private:
  const uint32_t ranks_;
  const std::vector<Contender> contenders_;
};

TEST(VirtualRunTest, AllContendersMoveTheirBytesAndASecondRunIsTheSame) {
  const Settings settings = Small();
  const Outcome first(settings);
  EXPECT_EQ(first.results.size(), 2u * 2 * 6);
  EXPECT_EQ(Outcome(settings).Csv(), first.Csv());
}

TEST(VirtualRunTest, OnlyTheUntunedSocketWaitsForADelayedAcknowledgement) {
  const Outcome outcome(Small());
  EXPECT_GT(outcome.Of(Pattern::kOneToOne, 64, "socket", "original").p50, 0.04);
  EXPECT_LT(outcome.Of(Pattern::kOneToOne, 64, "socket", "tuned").p50, 30e-6);
}

TEST(VirtualRunTest, RegistrationHasTheCostsOfThePreset) {
  Settings settings = Small();
  settings.ranks = 2;
  settings.patterns = {Pattern::kOneToOne};
  settings.sizes = {1 << 20};
  settings.protocols = {"read"};
  std::map<std::string, double> seconds;
  for (const char* registration : {"arena", "on_demand", "cached"}) {
    settings.registration = registration;
    seconds[registration] = Outcome(settings).Of(Pattern::kOneToOne, 1 << 20, "read", registration).p50;
  }
  // Both ends register 1 MiB, one after the other, of which the second is the puller's.
  const sim::HostCosts costs = *sim::FindPreset("cx6-200g", ".");
  const double each = (costs.registration + costs.registration_page * 256).seconds();
  EXPECT_GT(seconds["on_demand"], seconds["arena"] + each);
  EXPECT_LT(seconds["on_demand"], seconds["arena"] + 4 * each);
  EXPECT_LT(seconds["cached"], seconds["arena"] + each / 2) << "blocks are registered when they are first used";
}

// Each host has a processor of its own here, so what is missed is the doing of node and network.
TEST(VirtualRunTest, EightRanksShareFairlyAndTogetherMoveAsMuchAsTwoAlone) {
  Settings settings = Small();
  settings.ranks = 8;
  settings.patterns = {Pattern::kOneToOne, Pattern::kManyToOne, Pattern::kAllToAll};
  settings.sizes = {64 << 10, 1 << 20};
  settings.protocols = {"eager", "read", "write", "policy"};
  const Outcome outcome(settings);
  for (const CaseResult& result : outcome.results) {
    if (result.what.pattern == Pattern::kOneToOne) continue;
    const std::string& protocol = settings.protocols[result.what.contender];
    const double alone = outcome.Of(Pattern::kOneToOne, result.what.size, protocol, "arena").bytes_per_second;
    EXPECT_GE(result.bytes_per_second, 0.8 * alone) << outcome.NameOf(result);
    EXPECT_GE(result.least_share, 0.5 * result.mean_share) << outcome.NameOf(result);
    EXPECT_GE(result.least_source, 0.5) << outcome.NameOf(result);
  }
}

}  // namespace
}  // namespace tokamak::bench
