// The demo itself, on few files and little memory: real daemons, every protocol, and a holder that
// is killed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tests/daemon/tokd_process.h"
#include "tests/support/test_devices.h"

namespace tokamak::cli {
namespace {

namespace fs = std::filesystem;

constexpr base::Duration kLong = base::Seconds(240);

class DemoTest : public testing::Test {
 protected:
  DemoTest() {
    fs::create_directory(folder_.Path("files"));
    Make("tiny", 1);
    Make("small", 20'000);
    Make("medium", 700'000);
    // Long enough in transfer to be caught in the middle, as a rule.
    Make("large", size_t{32} << 20);
  }

  void Make(const std::string& name, size_t size) {
    const std::vector<uint8_t> bytes = daemon::Pattern(size, 5);
    std::ofstream(folder_.Path("files/" + name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(size));
  }

  int Run(const std::vector<std::string>& before, const std::vector<std::string>& after) {
    os::ChildOptions options;
    options.argv = {"lib/cli/tok", "--state", folder_.Path("new/deeper/st")};  // made, and removed
    options.argv.insert(options.argv.end(), before.begin(), before.end());
    options.argv.push_back("demo");
    options.argv.insert(options.argv.end(), after.begin(), after.end());
    if (!testing_support::OnSoftwareNic()) {
      options.argv.push_back("--device=" + absl::StrJoin(testing_support::TestDevices(), ","));
    }
    options.output = folder_.Path("output");
    const auto process = os::ChildProcess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    if (!process.ok()) return -1;
    const auto ended = (*process)->Wait(kLong);
    std::ifstream output(options.output);
    text_ = {std::istreambuf_iterator<char>(output), std::istreambuf_iterator<char>()};
    EXPECT_TRUE(ended.ok()) << text_;
    return ended.ok() ? ended->code : -1;
  }

  daemon::ShortFolder folder_;
  std::string text_;
};

TEST_F(DemoTest, EveryProtocolIsVerifiedAndAKilledHolderIsReplaced) {
  ASSERT_EQ(Run({"--json"}, {"--from", folder_.Path("files"), "--memory", "128MiB"}), 0) << text_;
  const auto result = nlohmann::json::parse(text_, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(result.is_object()) << text_;
  EXPECT_EQ(result["mismatches"], 0);
  EXPECT_EQ(result["verified"], 4 * 2 * 3 + 1);
  EXPECT_TRUE(absl::StrContains(result["killed"].get<std::string>(), "was killed in the middle of serving")) << text_;
  EXPECT_EQ(result["rows"].size(), 4u * 3);
  EXPECT_EQ(folder_.Files(), (std::vector<std::string>{"files", "output"}));
}

// The missing rest of the largest file may all be on its way when its first bytes have come.
TEST_F(DemoTest, AFileThatMayHaveArrivedIsReplacedByALargerObject) {
  Make("large", (size_t{4} << 20) + 1);
  ASSERT_EQ(Run({}, {"--from", folder_.Path("files"), "--memory", "128MiB"}), 0) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "a larger object is made up")) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "was killed in the middle of serving 64 MiB")) << text_;
  EXPECT_TRUE(absl::StrContains(text_, absl::StrCat("verified ", 4 * 2 * 3 + 1, " objects, 0 mismatches"))) << text_;
  EXPECT_EQ(folder_.Files(), (std::vector<std::string>{"files", "output"}));
}

TEST_F(DemoTest, AnEmptyChoiceIsReported) {
  EXPECT_EQ(Run({}, {"--from", folder_.Path("none")}), 1);
  EXPECT_TRUE(absl::StrContains(text_, "--from")) << text_;
  EXPECT_EQ(folder_.Files(), (std::vector<std::string>{"files", "output"}));
}

}  // namespace
}  // namespace tokamak::cli
