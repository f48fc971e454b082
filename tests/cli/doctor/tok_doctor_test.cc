// tok doctor as a program, on the software NIC: it needs no device, and this machine may have none.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/trace.h"
#include "lib/cli/doctor/listen.h"
#include "lib/cli/doctor/pulls.h"
#include "lib/os/loop_thread.h"
#include "lib/os/process/child_process.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/udp/udp_fabric.h"
#include "nlohmann/json.hpp"
#include "tests/cli/doctor/sieve_fabric.h"
#include "tests/support/short_folder.h"

namespace tokamak::cli::doctor {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

constexpr base::Duration kPatience = base::Seconds(60);

// A doctor that listens at 127.0.0.3 in this process, on a network that loses packets.
class SickListener final {
 public:
  explicit SickListener(Loses loses) : thread_({"listener"}), udp_(thread_.loop()), fabric_(udp_, std::move(loses)) {
    thread_.CallOn([this] {
      verbs::soft::DeviceOptions options;
      options.address = *verbs::Address::Parse("127.0.0.3");
      device_ = *verbs::soft::OpenSoftDevice(thread_.loop(), fabric_, trace_, options);
      station_ = *Station::Make(thread_.loop(), *device_, 1, base::Seconds(5), [](absl::string_view) {});
      options.address.port = kDoctorPort;
      EXPECT_TRUE(station_->Lend(options.address, {"soft:sick", 4096, 0}).ok());
    });
  }
  ~SickListener() {
    thread_.CallOn([this] {
      station_.reset();
      device_.reset();
    });
  }

 private:
  os::LoopThread thread_;
  verbs::soft::UdpFabric udp_;
  SieveFabric fabric_;
  base::NoTrace trace_;
  std::unique_ptr<verbs::soft::SoftDevice> device_;
  std::unique_ptr<Station> station_;
};

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
  const json& transfers = report["devices"][0]["findings"].back();
  EXPECT_EQ(transfers["check"], "transfers");
  for (const char* number :
       {"call_half_round_trip_us", "eager_bytes_per_second", "read_bytes_per_second", "write_bytes_per_second"}) {
    EXPECT_GT(transfers["numbers"][number], 0) << number;
  }
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
                                   {"--device", "soft:udp@127.0.0.1,soft:udp@127.0.0.2", "--peer", "192.0.2.2"},
                                   {"--peer", "host2"},
                                   {"--peer", "0.0.0.0"},
                                   {"--peer", "192.0.2.2", "--port", "0"},
                                   {"--listen", "--peer", "192.0.2.2"}}) {
    EXPECT_EQ(Run(arguments), 2) << text_;
    EXPECT_TRUE(absl::StartsWith(text_, "tok: ")) << text_;
  }
}

TEST_F(TokDoctorTest, TwoDoctorsMeasureBetweenThem) {
  const auto listening = Start("listen", {"--listen", "--device", "soft:udp@127.0.0.2"});
  ASSERT_NE(listening, nullptr);
  ASSERT_TRUE(Says("listen", "listening at 127.0.0.2:7099", *listening)) << Read("listen");
  EXPECT_EQ(Run({"--device", "soft:udp@127.0.0.1", "--peer", "127.0.0.2", "--json"}), 0) << text_;
  const json report = json::parse(text_, nullptr, false);
  ASSERT_TRUE(report.is_object()) << text_;
  ASSERT_EQ(report["with_peer"].size(), 3u);
  for (const json& finding : report["with_peer"]) EXPECT_EQ(finding["verdict"], "ok") << finding;
  ASSERT_TRUE(listening->Signal(SIGTERM).ok());
  const auto ended = listening->Wait(kPatience);
  EXPECT_TRUE(ended.ok() && ended->ok()) << Read("listen");
}

// Each by the step at which it stops, with a remedy of its own.
TEST_F(TokDoctorTest, EachFaultOfThePeerIsAFindingOfItsOwn) {
  const struct {
    const char* peer;
    Loses loses;
    const char* check;
    const char* seen;
    const char* advice;
  } rows[] = {
      {"127.0.0.3:7100", LosesNothing, "connection", "nobody listens", "run tok doctor --listen at 127.0.0.3:7100"},
      {"127.0.0.4", LosesNothing, "connection", "127.0.0.4:7099: not connected by the deadline", "does ping reach"},
      {"127.0.0.3", LosesAllButManagement, "transfers", "'call of 64 B' failed", "carries nothing"},
      {"127.0.0.3", LosesLarge, "transfers", "'eager of 256 KiB' failed", "ping -M do"},
      {"127.0.0.3", LosesReads, "transfers", "'read of 256 KiB' failed", "READ does not"},
      {"127.0.0.3", LosesWrites, "transfers", "'write of 256 KiB' failed", "WRITE does not"},
  };
  for (const auto& row : rows) {
    const SickListener listener(row.loses);
    EXPECT_EQ(Run({"--device", "soft:udp@127.0.0.1", "--peer", row.peer, "--json"}), 1) << text_;
    const json report = json::parse(text_, nullptr, false);
    ASSERT_TRUE(report.is_object()) << text_;
    EXPECT_EQ(report["devices"][0]["works"], true) << text_;
    std::string failed;
    for (const json& finding : report["with_peer"]) {
      if (finding["verdict"] != "failed") continue;
      failed = finding["check"];
      EXPECT_TRUE(absl::StrContains(std::string(finding["seen"]), row.seen)) << finding;
      EXPECT_TRUE(absl::StrContains(std::string(finding["advice"]), row.advice)) << finding;
    }
    EXPECT_EQ(failed, row.check) << text_;
  }
}

}  // namespace
}  // namespace tokamak::cli::doctor
