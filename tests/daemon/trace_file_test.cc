// tokd's file of --trace: each phase of each pull, one after the other, as Perfetto reads it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/daemon/tokd_process.h"

namespace tokamak::daemon {
namespace {

TEST(TraceFileTest, ATraceHasThePhasesOfEachPullInOrder) {
  ShortFolder folder;
  const std::string file = folder.Path("trace.json");
  TokdProcess one(folder, 1, {});
  one.AwaitReady();
  std::vector<std::string> flags = DirectoryOfNode1();
  flags.insert(flags.end(), {"--trace", file});
  TokdProcess two(folder, 2, flags);
  two.AwaitReady();
  {
    Client holder = one.Connect(), getter = two.Connect();
    for (const auto protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
      const auto id = ObjectId::FromName(absl::StrCat(static_cast<int>(protocol)));
      ASSERT_TRUE(holder.Put(id, Pattern(1'777'777, 1)).ok());
      ASSERT_TRUE(getter.Get(id, kPatience, {protocol}).ok());
    }
  }
  EXPECT_EQ(two.Terminate().status.code, 0);
  EXPECT_EQ(one.Terminate().status.code, 0);

  struct Pull {
    std::map<std::string, double> spent;  // microseconds
    double began = 0;
    double end = 0;
  };
  std::map<std::string, Pull> pulls;
  std::vector<std::pair<double, double>> gets;
  std::ifstream in(file);
  const nlohmann::json events = nlohmann::json::parse(in)["traceEvents"];
  ASSERT_EQ(events.size() % 2, 0u);
  for (size_t i = 0; i < events.size(); i += 2) {
    const nlohmann::json& begin = events[i];
    const nlohmann::json& end = events[i + 1];
    ASSERT_EQ(begin["ph"], "b");
    ASSERT_EQ(end["ph"], "e");
    ASSERT_EQ(begin["id"], end["id"]);
    ASSERT_EQ(begin["name"], end["name"]);
    const double from = begin["ts"], to = end["ts"];
    EXPECT_LE(from, to);
    if (begin["cat"] == "get") {
      EXPECT_EQ(begin["name"], "session");
      gets.emplace_back(from, to);
      continue;
    }
    Pull& pull = pulls[begin["id"]];
    if (pull.end == 0) pull.began = from;
    if (pull.end > 0) {
      EXPECT_NEAR(from, pull.end, 0.01) << "one phase follows the other";
    }
    pull.end = to;
    pull.spent[begin["name"]] += to - from;
  }
  EXPECT_EQ(pulls.size(), 3u);
  ASSERT_EQ(gets.size(), 3u);
  for (const auto& [id, pull] : pulls) {
    const auto around = [&began = pull.began](const auto& get) { return get.first <= began && began <= get.second; };
    EXPECT_EQ(std::count_if(gets.begin(), gets.end(), around), 1) << "a get that waited for it";
  }
  size_t copied = 0, opened = 0;
  for (const auto& [id, pull] : pulls) {
    for (const char* phase : {"directory", "reserve", "request", "data", "seal"})
      EXPECT_EQ(pull.spent.count(phase), 1u) << phase;
    copied += pull.spent.count("copy");
    opened += pull.spent.count("register");
  }
  EXPECT_EQ(copied, 1u) << "by messages only";
  EXPECT_EQ(opened, 1u) << "by WRITE only";
}

}  // namespace
}  // namespace tokamak::daemon
