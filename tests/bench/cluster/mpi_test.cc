// The program as people run it: ci/cluster, mpirun and three real nodes over loopback, with small
// objects.
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "lib/os/process/child_process.h"
#include "nlohmann/json.hpp"
#include "tests/support/short_folder.h"

namespace tokamak::bench {
namespace {

class MpiTest : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "MPI's threads are out of the thread sanitizer's sight";
#endif
  }

  struct Ended {
    os::ExitStatus status;
    std::string output;  // standard output and error
  };

  Ended Run(const std::string& ranks, const std::vector<std::string>& flags) {
    os::ChildOptions child;
    child.argv = {"ci/cluster", "--ranks", ranks, "--program", "tests/bench/cluster/cluster"};
    child.argv.insert(child.argv.end(), flags.begin(), flags.end());
    child.output = folder_.Path("output");
    child.die_with_parent = true;
    // MPI gives little of its memory back; where a sanitizer looks for leaks, these are not ours.
    child.environment = {{"TMPDIR", folder_.path()}, {"ASAN_OPTIONS", "detect_leaks=0"}};
    auto started = os::ChildProcess::Start(child);
    EXPECT_TRUE(started.ok()) << started.status();
    if (!started.ok()) return {};
    const auto ended = (*started)->Wait(base::Seconds(120));
    EXPECT_TRUE(ended.ok()) << ended.status();
    Ended result{ended.value_or(os::ExitStatus{-1, 0}), Read("output")};
    std::ofstream(child.output, std::ios::trunc);
    return result;
  }

  std::string Read(const std::string& name) const {
    std::ifstream file(folder_.Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  testing_support::ShortFolder folder_;
};

TEST_F(MpiTest, ThreeNodesMeasureEverything) {
  const Ended ended = Run("3", {"--sizes", "64,300000", "--warm-up", "1", "--least-repetitions", "6", "--repetitions",
                                "6", "--csv", folder_.Path("out.csv"), "--json", folder_.Path("out.json")});
  ASSERT_TRUE(ended.status.ok()) << ended.status.ToString() << "\n" << ended.output;
  const std::vector<std::string> lines = absl::StrSplit(Read("out.csv"), "\r\n", absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 1u + 4 * 2 * 6) << ended.output;
  std::set<std::string> cases;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = absl::StrSplit(lines[i], ',');
    ASSERT_GE(fields.size(), 19u) << lines[i];
    cases.insert(fields[0] + " " + fields[1] + " " + fields[2] + " " + fields[3]);
    EXPECT_EQ(fields[4], "3");
    double p10 = 0, p50 = 0, p90 = 0;
    ASSERT_TRUE(absl::SimpleAtod(fields[7], &p10) && absl::SimpleAtod(fields[8], &p50) &&
                absl::SimpleAtod(fields[9], &p90))
        << lines[i];
    EXPECT_GT(p10, 0) << lines[i];
    EXPECT_LE(p10, p50) << lines[i];
    EXPECT_LE(p50, p90) << lines[i];
    EXPECT_TRUE(absl::StrContains(lines[i], "mpirun -np 3 cluster --sizes 64,300000")) << lines[i];
  }
  EXPECT_EQ(cases.size(), lines.size() - 1) << "each case once";
  EXPECT_EQ(nlohmann::json::parse(Read("out.json"))["results"].size(), lines.size() - 1);
  EXPECT_TRUE(absl::StrContains(ended.output, "3 ranks on 1 host")) << ended.output;
  EXPECT_TRUE(absl::StrContains(ended.output, "48 of 48: ")) << "progress: " << ended.output;
}

TEST_F(MpiTest, OtherWaysToRegisterAndToDetectWorkToo) {
  const Ended ended = Run("2", {"--sizes",
                                "300000",
                                "--patterns",
                                "all-to-all",
                                "--protocols",
                                "read,write",
                                "--registration",
                                "on_demand",
                                "--detection",
                                "adaptive:5us",
                                "--engines",
                                "0",
                                "--bulk-queue-pairs",
                                "2",
                                "--chunk-size",
                                "64KiB",
                                "--depth",
                                "4",
                                "--repetitions",
                                "10",
                                "--csv",
                                folder_.Path("out.csv")});
  ASSERT_TRUE(ended.status.ok()) << ended.status.ToString() << "\n" << ended.output;
  EXPECT_TRUE(absl::StrContains(Read("out.csv"), "all-to-all,300000,write,on_demand,2,")) << ended.output;
}

TEST_F(MpiTest, KeptObjectsAreRegisteredOnce) {
  const Ended ended =
      Run("2", {"--sizes", "300000", "--patterns", "one-to-one", "--protocols", "read,socket-tuned", "--registration",
                "cached", "--keep", "--repetitions", "10", "--csv", folder_.Path("out.csv")});
  ASSERT_TRUE(ended.status.ok()) << ended.status.ToString() << "\n" << ended.output;
  EXPECT_TRUE(absl::StrContains(Read("out.csv"), "one-to-one,300000,read,cached,2,")) << ended.output;
  EXPECT_TRUE(absl::StrContains(Read("out.csv"), "one-to-one,300000,socket,tuned,2,")) << ended.output;
}

TEST_F(MpiTest, MistakesAreReportedOnce) {
  const Ended flag = Run("2", {"--sizes", "2GiB"});
  EXPECT_EQ(flag.status.code, 2) << flag.output;
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(flag.output, "--sizes: ")).size(), 2u) << flag.output;
  const Ended alone = Run("1", {});
  EXPECT_EQ(alone.status.code, 1) << alone.output;
  EXPECT_TRUE(absl::StrContains(alone.output, "-np 2")) << alone.output;
  const Ended memory = Run("2", {"--memory", "8MiB"});
  EXPECT_EQ(memory.status.code, 1) << memory.output;
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(memory.output, "--memory: 8 MiB")).size(), 2u) << memory.output;
}

}  // namespace
}  // namespace tokamak::bench
