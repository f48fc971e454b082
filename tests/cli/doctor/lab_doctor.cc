// tok doctor on real devices, healthy ones and ones that the test makes sick.
//
// Runs in a guest of ci/softroce only, whose network and devices it changes; each test leaves them
// as they were.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
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

constexpr base::Duration kPatience = base::Seconds(120);

std::string Told(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class LabDoctorTest : public testing::Test {
 protected:
  LabDoctorTest() {
    std::istringstream devices(Told("TOKAMAK_LAB_DEVICES"));
    devices >> first_ >> second_;
  }

  std::string Read(const std::string& log) const {
    std::ifstream file(folder_.Path(log));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::unique_ptr<os::ChildProcess> Start(const std::string& log, const Strings& command) {
    os::ChildOptions options;
    options.argv = command;
    options.output = folder_.Path(log);
    auto process = os::ChildProcess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    return process.ok() ? *std::move(process) : nullptr;
  }

  // The exit code of a command, what it said in text_.
  int Run(const Strings& command) {
    const std::string log = absl::StrCat("run", ++runs_);
    const auto process = Start(log, command);
    if (process == nullptr) return -1;
    const auto ended = process->Wait(kPatience);
    text_ = Read(log);
    EXPECT_TRUE(ended.ok()) << "no end of " << command[0] << ": " << text_;
    return ended.ok() ? ended->code : -1;
  }
  void Must(const Strings& command) { ASSERT_EQ(Run(command), 0) << command[0] << ": " << text_; }

  // Runs tok doctor with these flags, by a command such as setpriv in front; its exit code and, in
  // report_, what it found.
  int Doctor(const Strings& arguments, const Strings& by = {}) {
    Strings command = by;
    command.insert(command.end(), {"lib/cli/tok", "--json", "doctor"});
    command.insert(command.end(), arguments.begin(), arguments.end());
    const int code = Run(command);
    report_ = json::parse(text_, nullptr, false);
    EXPECT_TRUE(report_.is_object()) << text_;
    return code;
  }

  // A doctor that listens at the second device.
  std::unique_ptr<os::ChildProcess> Listen(const Strings& arguments = {}) {
    Strings command = {"lib/cli/tok", "doctor", "--listen", "--device", "ibv:" + second_};
    command.insert(command.end(), arguments.begin(), arguments.end());
    auto listening = Start("listen", command);
    while (listening != nullptr && !absl::StrContains(Read("listen"), "listening at")) {
      if (listening->Wait(base::Milliseconds(50)).status().code() == absl::StatusCode::kDeadlineExceeded) continue;
      ADD_FAILURE() << Read("listen");
      return nullptr;
    }
    return listening;
  }

  static std::string VerdictOf(const json& findings, const std::string& check) {
    for (const json& finding : findings) {
      if (finding["check"] == check) return finding["verdict"];
    }
    return "none";
  }
  std::string OfMachine(const std::string& check) const { return VerdictOf(report_["machine"], check); }
  std::string OfDevice(const std::string& check) const { return VerdictOf(report_["devices"][0]["findings"], check); }

  testing_support::ShortFolder folder_;
  std::string first_, second_;
  std::string text_;
  json report_;
  int runs_ = 0;
};

TEST_F(LabDoctorTest, HealthyDevicesWorkAndAreMeasured) {
  EXPECT_EQ(Doctor({}), 0) << text_;
  EXPECT_EQ(report_["works"], true);
  ASSERT_EQ(report_["devices"].size(), 2u) << text_;
  for (const json& device : report_["devices"]) {
    for (const json& finding : device["findings"]) EXPECT_EQ(finding["verdict"], "ok") << finding;
    const json& numbers = device["findings"].back()["numbers"];
    EXPECT_GT(numbers["call_half_round_trip_us"], 0);
    EXPECT_GT(numbers["write_bytes_per_second"], 0);
    EXPECT_GT(numbers["read_bytes_per_second"], 0);
  }
}

TEST_F(LabDoctorTest, TwoDoctorsMeasureOverTheCable) {
  const auto listening = Listen();
  ASSERT_NE(listening, nullptr);
  EXPECT_EQ(Doctor({"--device", "ibv:" + first_, "--peer", "10.0.0.2"}), 0) << text_;
  ASSERT_EQ(report_["with_peer"].size(), 3u);
  for (const json& finding : report_["with_peer"]) EXPECT_EQ(finding["verdict"], "ok") << finding;
  ASSERT_TRUE(listening->Signal(SIGTERM).ok());
  const auto ended = listening->Wait(kPatience);
  EXPECT_TRUE(ended.ok() && ended->ok()) << Read("listen");
}

// By the exchange over TCP as well, and not where the two sides differ in that.
TEST_F(LabDoctorTest, ConnectionsByTcpAreTriedAsSuch) {
  if (Told("TOKAMAK_LAB_KIND") == "siw") {
    EXPECT_EQ(Doctor({"--device", "ibv:" + first_, "--cm", "tcp", "--address", "127.0.0.1"}), 1) << text_;
    EXPECT_EQ(OfDevice("use"), "failed") << text_;
    EXPECT_TRUE(absl::StrContains(text_, "leave out --cm tcp")) << text_;
    return;
  }
  EXPECT_EQ(Doctor({"--device", "ibv:" + first_ + ",ibv:" + second_, "--cm", "tcp", "--address", "127.0.0.1"}), 0)
      << text_;
  EXPECT_EQ(report_["devices"].size(), 2u) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "connected to itself by --cm tcp")) << text_;
  EXPECT_EQ(Doctor({"--device", "ibv:" + first_, "--cm", "tcp", "--address", "127.0.0.1", "--service-level", "3",
                    "--traffic-class", "104"}),
            0)
      << text_;
  const auto listening = Listen({"--cm", "tcp", "--address", "127.0.0.1"});
  ASSERT_NE(listening, nullptr);
  EXPECT_EQ(Doctor({"--device", "ibv:" + first_, "--peer", "127.0.0.1", "--cm", "tcp", "--address", "127.0.0.1"}), 0)
      << text_;
  for (const json& finding : report_["with_peer"]) EXPECT_EQ(finding["verdict"], "ok") << finding;
  EXPECT_EQ(Doctor({"--device", "ibv:" + first_, "--peer", "10.0.0.2"}), 1) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "with the same --cm")) << text_;
  listening->Stop(kPatience);
}

// The limit in KiB, and where that ends: at the store that tokd would have, or in a registration.
TEST_F(LabDoctorTest, TooLittleLockedMemoryIsAFailure) {
  const struct {
    const char* limit;
    const char* use;
    const char* transfers;
  } rows[] = {{"32768", "ok", "ok"}, {"8192", "ok", "failed"}, {"256", "failed", "not applicable"}};
  for (const auto& row : rows) {
    // Still root: others may not reach the program, which lies in the folders of who built it.
    const std::string script = absl::StrCat("ulimit -l ", row.limit, "; exec \"$@\"");
    EXPECT_EQ(Doctor({"--device", "ibv:" + first_}, {"setpriv", "--bounding-set=-ipc_lock", "sh", "-c", script, "sh"}),
              1)
        << text_;
    EXPECT_EQ(OfMachine("memlock"), "failed") << text_;
    EXPECT_EQ(OfDevice("use"), row.use) << text_;
    EXPECT_EQ(OfDevice("transfers"), row.transfers) << text_;
    if (report_["devices"][0]["works"] == false) {
      EXPECT_TRUE(absl::StrContains(text_, "raise the limit on locked memory")) << text_;
    }
  }
}

TEST_F(LabDoctorTest, ALinkThatIsDownIsNamed) {
  Must({"ip", "link", "set", "v0", "down"});
  EXPECT_EQ(Doctor({"--device", "ibv:" + first_}), 1) << text_;
  EXPECT_EQ(OfDevice("link"), "failed") << text_;
  EXPECT_EQ(OfDevice("transfers"), "not applicable") << text_;
  Must({"ip", "link", "set", "v0", "up"});
}

// Soft-RoCE alone: SoftiWARP goes by addresses, not by GIDs.
TEST_F(LabDoctorTest, APortThatHasNoAddressForRdmaCmIsNamed) {
  if (Told("TOKAMAK_LAB_KIND") == "siw") return;
  // The kernel tells nobody when the table has changed.
  const std::string look = "for try in $(seq 600); do grep -qs ffff:0a00:0001 /sys/class/infiniband/" + first_ +
                           "/ports/1/gids/*; [ $? $1 0 ] && exit; sleep 0.05; done; exit 1";
  Must({"ip", "address", "del", "10.0.0.1/24", "dev", "v0"});
  Must({"sh", "-c", look, "sh", "-ne"});
  EXPECT_EQ(Doctor({"--device", "ibv:" + first_}), 1) << text_;
  EXPECT_EQ(OfDevice("gid"), "failed") << text_;
  EXPECT_EQ(OfDevice("use"), "failed") << text_;
  EXPECT_TRUE(absl::StrContains(text_, "speaks from a link-local address")) << text_;
  EXPECT_EQ(Doctor({"--device", "ibv:" + first_, "--cm", "tcp", "--address", "127.0.0.1"}), 0) << text_;
  Must({"ip", "address", "add", "10.0.0.1/24", "dev", "v0"});
  Must({"sh", "-c", look, "sh", "-eq"});
}

TEST_F(LabDoctorTest, MtusThatDifferAreAWarning) {
  const auto listening = Listen();
  ASSERT_NE(listening, nullptr);
  Must({"ip", "link", "set", "v0", "mtu", "1500"});
  EXPECT_EQ(Doctor({"--device", "ibv:" + first_, "--peer", "10.0.0.2"}), 0) << text_;
  EXPECT_EQ(VerdictOf(report_["with_peer"], "mtu"), "warning") << text_;
  EXPECT_EQ(VerdictOf(report_["with_peer"], "transfers"), "ok") << text_;
  Must({"ip", "link", "set", "v0", "mtu", "9000"});
  listening->Stop(kPatience);
}

// Soft-RoCE alone: SoftiWARP's TCP finds the size that passes. Its full packet has 4156 bytes. They
// are dropped where they arrive: rxe tries for ever to send what its network device refuses.
TEST_F(LabDoctorTest, LargePacketsThatVanishAreToldFromAWireThatCarriesNothing) {
  if (Told("TOKAMAK_LAB_KIND") == "siw") return;
  const auto listening = Listen();
  ASSERT_NE(listening, nullptr);
  Must({"tc", "qdisc", "add", "dev", "v0", "clsact"});
  Must({"sh", "-c", "tc filter add dev v0 ingress protocol ip u32 match u16 0x1000 0xf000 at 2 action drop"});
  EXPECT_EQ(Doctor({"--device", "ibv:" + first_, "--peer", "10.0.0.2"}), 1) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "'eager of 256 KiB' failed")) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "ping -M do")) << text_;
  Must({"tc", "qdisc", "del", "dev", "v0", "clsact"});
  listening->Stop(kPatience);
}

TEST_F(LabDoctorTest, ADeviceThatIsMissingIsSaidWithThoseThatAreThere) {
  Must({"rdma", "link", "delete", first_});
  EXPECT_EQ(Doctor({"--device", "ibv:" + first_}), 1) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "there are ibv:" + second_)) << text_;
  EXPECT_EQ(Doctor({}), 0) << "the other one is well: " << text_;
  Must({"rdma", "link", "add", first_, "type", Told("TOKAMAK_LAB_KIND"), "netdev", "v0"});
}

// Only Soft-RoCE has this: it can be made in a network namespace, looks healthy and carries
// nothing.
TEST_F(LabDoctorTest, APhantomInANetworkNamespaceIsFound) {
  Must({"ip", "netns", "add", "apart"});
  Must({"ip", "-n", "apart", "link", "add", "w0", "type", "veth", "peer", "name", "w1"});
  Must({"ip", "-n", "apart", "address", "add", "10.9.0.1/24", "dev", "w0"});
  Must({"ip", "-n", "apart", "link", "set", "w0", "up"});
  Must({"ip", "-n", "apart", "link", "set", "w1", "up"});
  const Strings apart = {"ip", "netns", "exec", "apart"};
  Must({"ip", "netns", "exec", "apart", "rdma", "link", "add", "phantom0", "type", "rxe", "netdev", "w0"});
  EXPECT_EQ(Doctor({"--device", "ibv:phantom0"}, apart), 1) << text_;
  EXPECT_EQ(OfMachine("network"), "warning") << text_;
  EXPECT_TRUE(absl::StrContains(text_, "--network host")) << text_;
  Must({"rdma", "link", "delete", "phantom0"});
  Must({"ip", "netns", "delete", "apart"});
}

}  // namespace
}  // namespace tokamak::cli::doctor
