// tok doctor as a program, on the software NIC: it needs no device, and this machine may have none.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/os/process/child_process.h"
#include "nlohmann/json.hpp"
#include "tests/support/short_folder.h"

namespace tokamak::cli::doctor {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

constexpr base::Duration kPatience = base::Seconds(60);

class TokDoctorTest : public testing::Test {
 protected:
  std::unique_ptr<os::ChildProcess> Start(const std::string& log, const Strings& arguments) {
    os::ChildOptions options;
    options.argv = {"lib/cli/tok", "doctor"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.output = folder_.Path(log);
    auto process = os::ChildProcess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    return process.ok() ? *std::move(process) : nullptr;
  }

  std::string Read(const std::string& log) const {
    std::ifstream file(folder_.Path(log));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // Its exit code; what it said is in text_.
  int Run(const Strings& arguments) {
    const std::string log = absl::StrCat("run", ++runs_);
    const auto process = Start(log, arguments);
    if (process == nullptr) return -1;
    const auto ended = process->Wait(kPatience);
    text_ = Read(log);
    EXPECT_TRUE(ended.ok() && ended->signal == 0) << text_;
    return ended.ok() ? ended->code : -1;
  }

  // Looks until the log has `words`.
  bool Says(const std::string& log, const std::string& words, os::ChildProcess& process) {
    while (process.running()) {
      if (absl::StrContains(Read(log), words)) return true;
      if (process.Wait(base::Milliseconds(20)).ok()) break;
    }
    return absl::StrContains(Read(log), words);
  }

  testing_support::ShortFolder folder_;
  std::string text_;
  int runs_ = 0;
};

TEST_F(TokDoctorTest, AHealthySoftwareNicIsWellInWordsAndInJson) {
  EXPECT_EQ(Run({"--device", "soft:udp@127.0.0.1"}), 0) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "it works: tokd --device soft:udp@127.0.0.1")) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "half round trip")) << text_;
  EXPECT_EQ(Run({"--device", "soft:udp@127.0.0.1", "--json"}), 0) << text_;
  const json report = json::parse(text_, nullptr, false);
  ASSERT_TRUE(report.is_object()) << text_;
  EXPECT_EQ(report["works"], true);
  const json& ping_pong = report["devices"][0]["findings"].back();
  EXPECT_EQ(ping_pong["check"], "ping-pong");
  EXPECT_GT(ping_pong["numbers"]["send_half_round_trip_us"], 0);
  EXPECT_GT(ping_pong["numbers"]["write_bytes_per_second"], 0);
  EXPECT_GT(ping_pong["numbers"]["read_bytes_per_second"], 0);
}

TEST_F(TokDoctorTest, SeveralDevicesAreNamedAsForTokd) {
  const std::string both = "soft:udp@127.0.0.1,soft:udp@127.0.0.2";
  EXPECT_EQ(Run({"--device", both}), 0) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "it works: tokd --device " + both)) << text_;
  EXPECT_EQ(Run({"--device", "soft:udp@127.0.0.1", "--device", "soft:udp@192.0.2.1"}), 1) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "it does not work")) << text_;
}

TEST_F(TokDoctorTest, AnAddressThatIsNotOursIsAFailure) {
  EXPECT_EQ(Run({"--device", "soft:udp@192.0.2.1"}), 1) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "'open' failed")) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "it does not work")) << text_;
}

TEST_F(TokDoctorTest, ADeviceThatTheKernelDoesNotHaveIsAFailure) {
  EXPECT_EQ(Run({"--device", "ibv:nosuch9"}), 1) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "no RDMA device nosuch9")) << text_;
}

TEST_F(TokDoctorTest, WrongFlagsAreAUsageError) {
  for (const Strings& arguments : {Strings{"--device", "rxe0"},
                                   {"--memory", "much"},
                                   {"--port", "70000"},
                                   {"--nosuch"},
                                   {"--cm", "carrier pigeon"},
                                   {"--cm", "tcp", "--device", "soft:udp@127.0.0.1"},
                                   {"--cm", "tcp", "--device", "ibv:nosuch9"},
                                   {"--pkey-index", "3", "--device", "ibv:nosuch9"},
                                   {"--cm", "tcp", "--address", "127.0.0.1", "--service-level", "16"},
                                   {"--device", "soft:udp@127.0.0.1,soft:udp@127.0.0.2", "--peer", "host2"},
                                   {"--listen", "--peer", "host2"}}) {
    EXPECT_EQ(Run(arguments), 2) << text_;
    EXPECT_TRUE(absl::StartsWith(text_, "tok: ")) << text_;
  }
}

TEST_F(TokDoctorTest, TwoDoctorsMeasureBetweenThem) {
  const auto listening = Start("listen", {"--listen", "--device", "soft:udp@127.0.0.2"});
  ASSERT_NE(listening, nullptr);
  ASSERT_TRUE(Says("listen", "listening on TCP port 7099", *listening)) << Read("listen");
  EXPECT_EQ(Run({"--device", "soft:udp@127.0.0.1", "--peer", "127.0.0.2", "--json"}), 0) << text_;
  const json report = json::parse(text_, nullptr, false);
  ASSERT_TRUE(report.is_object()) << text_;
  ASSERT_EQ(report["with_peer"].size(), 4u);
  for (const json& finding : report["with_peer"]) EXPECT_EQ(finding["verdict"], "ok") << finding;
  ASSERT_TRUE(listening->Signal(SIGTERM).ok());
  const auto ended = listening->Wait(kPatience);
  EXPECT_TRUE(ended.ok() && ended->ok()) << Read("listen");
}

TEST_F(TokDoctorTest, APeerWhereNobodyListensIsAFailure) {
  EXPECT_EQ(Run({"--device", "soft:udp@127.0.0.1", "--peer", "127.0.0.2"}), 1) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "tok doctor --listen on 127.0.0.2")) << text_;
}

}  // namespace
}  // namespace tokamak::cli::doctor
