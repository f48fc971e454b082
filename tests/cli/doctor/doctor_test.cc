// The whole examination, on machines that are folders and with probes whose outcomes the test
// decides.
#include "lib/cli/doctor/doctor.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "lib/cli/doctor/listen.h"
#include "lib/cli/doctor/machine_checks.h"
#include "tests/cli/doctor/expect_finding.h"
#include "tests/cli/doctor/fake_machine.h"
#include "tests/cli/doctor/probes.h"

namespace tokamak::cli::doctor {
namespace {

const verbs::Address kPeer = *verbs::Address::Parse("192.0.2.2:7099");
const verbs::Address kOwn = *verbs::Address::Parse("192.0.2.1");

// A healthy machine without devices, and what is asked of the doctor. Probes go well, unless the
// test says otherwise.
struct Scene {
  Scene() { machine.BeHealthy(); }

  absl::StatusOr<Report> Run() {
    return Examine(settings, machine.files(), [this](const ProbeRequest& request) { return Probe(request); });
  }

  ProbeOutcome Probe(const ProbeRequest& request) {
    const bool alone = request.peer.is_unspecified();
    std::string name = alone ? request.device : absl::StrCat(request.device, " to ", request.peer.ToString());
    if (request.opening.by_tcp) absl::StrAppend(&name, " by tcp at ", request.opening.address.ToString());
    const std::string flags = request.opening.FabricFlags();
    asked.push_back(flags.empty() ? name : absl::StrCat(name, " ", flags));
    const auto outcome = outcomes.find(name);
    if (outcome != outcomes.end()) return outcome->second;
    ProbeOutcome well = WellProbed();
    if (!alone) well.figures.peer = {"ibv:rxe7", 4096, 9000};
    return well;
  }

  void AddRxe(int count) {
    for (int i = 0; i < count; ++i) machine.AddRxe(absl::StrCat("rxe", i), absl::StrCat("v", i));
  }
  void ByTcp() {
    settings.opening.by_tcp = true;
    settings.opening.address = kOwn;
  }
  void RemoveManager() {
    machine.Remove("/sys/class/misc/rdma_cm");
    machine.Remove("/dev/infiniband/rdma_cm");
  }
  // Its file may be opened by nobody, not even root.
  void ShutSecond() {
    AddRxe(2);
    machine.Remove("/dev/infiniband/uverbs1");
    machine.Link("/dev/infiniband/uverbs1", "/nowhere");
  }
  void TakeDown() {
    machine.PutState("rxe0", "1: DOWN", "3: Disabled");
    machine.PutNetdev("v0", "down", 9000, "02:00:00:00:00:01");
    outcomes["ibv:rxe0"] = FailedIn("open", absl::UnavailableError("no GID is usable"));
  }
  void Empty() {
    for (const char* folder : {"/proc", "/sys", "/dev"}) machine.Remove(folder);
    machine.Put("/proc/sys/net/core/rmem_max", "212992");
  }
  void LimitLocked() { machine.PutLockLimit("1073741824", "1073741824"); }
  void Name(const std::string& devices) { settings.devices = absl::StrSplit(devices, ','); }
  void Meet() { settings.peer = kPeer; }
  void Wish(uint8_t service_level, uint8_t traffic_class) {
    settings.opening.fabric.service_level = service_level;
    settings.opening.fabric.traffic_class = traffic_class;
  }
  void Hang(const std::string& probed) { outcomes[probed] = HungIn("open"); }
  void Fail(const std::string& probed) { outcomes[probed] = FailedIn("connect", absl::UnavailableError("no way")); }

  FakeMachine machine;
  std::map<std::string, ProbeOutcome> outcomes;  // by what is probed, without the fabric's flags
  std::vector<std::string> asked;
  DoctorSettings settings;
};

// All that failed or is warned of, in the order of the report: "permission warning, 0 use failed".
std::string Troubles(const Report& report) {
  std::vector<std::string> troubles;
  const auto add = [&](const std::string& where, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      if (finding.verdict != Verdict::kFailed && finding.verdict != Verdict::kWarning) continue;
      troubles.push_back(absl::StrCat(where, finding.check, " ", ToString(finding.verdict)));
    }
  };
  add("", report.machine);
  for (size_t i = 0; i < report.devices.size(); ++i) add(absl::StrCat(i, " "), report.devices[i].findings);
  add("peer ", report.with_peer);
  return absl::StrJoin(troubles, ", ");
}

struct SceneRow {
  const char* what;
  std::function<void(Scene&)> set;
  bool works;
  const char* probed;
  const char* flags;  // for tokd
  const char* troubles;
};

TEST(DoctorTest, EachMachineIsExaminedAndJudged) {
  const SceneRow rows[] = {
      {"one device", [](Scene& s) { s.AddRxe(1); }, true, "ibv:rxe0", "--device ibv:rxe0", ""},
      {"no device", [](Scene&) {}, false, "", "", "devices failed"},
      {"a phantom beside a healthy device", [](Scene& s) { s.AddRxe(2), s.Hang("ibv:rxe0"); }, true,
       "ibv:rxe0;ibv:rxe1", "--device ibv:rxe1", "0 use failed"},
      {"only the named one", [](Scene& s) { s.AddRxe(2), s.Name("ibv:rxe0:1@1"), s.Hang("ibv:rxe0:1@1"); }, false,
       "ibv:rxe0:1@1", "", "0 use failed"},
      {"several named", [](Scene& s) { s.AddRxe(3), s.Name("ibv:rxe2,ibv:rxe0"); }, true, "ibv:rxe2;ibv:rxe0",
       "--device ibv:rxe2,ibv:rxe0", ""},
      {"tokd would not come up with both",
       [](Scene& s) { s.AddRxe(3), s.Name("ibv:rxe2,ibv:rxe0"), s.Hang("ibv:rxe0"); }, false, "ibv:rxe2;ibv:rxe0", "",
       "1 use failed"},
      {"real and software devices", [](Scene& s) { s.AddRxe(1), s.Name("ibv:rxe0,soft:udp@127.0.0.1"); }, true,
       "ibv:rxe0;soft:udp@127.0.0.1", "--device ibv:rxe0,soft:udp@127.0.0.1", ""},
      {"the software NIC needs nothing of the kernel's RDMA", [](Scene& s) { s.Empty(), s.Name("soft:udp@127.0.0.1"); },
       true, "soft:udp@127.0.0.1", "--device soft:udp@127.0.0.1", "udp buffers warning"},
      {"no rdma_cm", [](Scene& s) { s.AddRxe(1), s.RemoveManager(); }, false, "ibv:rxe0", "--device ibv:rxe0",
       "modules failed"},
      {"no rdma_cm, nor is it needed", [](Scene& s) { s.AddRxe(1), s.RemoveManager(), s.ByTcp(), s.Meet(); }, true,
       "ibv:rxe0 by tcp at 192.0.2.1;ibv:rxe0 to 192.0.2.2:7099 by tcp at 192.0.2.1", "--device ibv:rxe0 --cm tcp", ""},
      {"the fabric's wishes are tried", [](Scene& s) { s.AddRxe(1), s.ByTcp(), s.Wish(3, 104); }, true,
       "ibv:rxe0 by tcp at 192.0.2.1 --service-level 3 --traffic-class 104",
       "--device ibv:rxe0 --cm tcp --service-level 3 --traffic-class 104", ""},
      {"a wish for 0 is one", [](Scene& s) { s.AddRxe(1), s.Wish(0, 0); }, true,
       "ibv:rxe0 --service-level 0 --traffic-class 0", "--device ibv:rxe0 --service-level 0 --traffic-class 0", ""},
      {"a closed device", [](Scene& s) { s.ShutSecond(); }, true, "ibv:rxe0;ibv:rxe1", "--device ibv:rxe0",
       "permission warning"},
      {"a closed device that is not named", [](Scene& s) { s.ShutSecond(), s.Name("ibv:rxe0:1@1"); }, true,
       "ibv:rxe0:1@1", "--device ibv:rxe0:1@1", ""},
      {"a closed device that is named", [](Scene& s) { s.ShutSecond(), s.Name("ibv:rxe0,ibv:rxe1"); }, false,
       "ibv:rxe0;ibv:rxe1", "--device ibv:rxe0,ibv:rxe1", "permission failed"},
      {"no such device", [](Scene& s) { s.AddRxe(1), s.Name("ibv:rxe7"); }, false, "", "", "0 link failed"},
      {"no such port", [](Scene& s) { s.AddRxe(1), s.Name("ibv:rxe0:2"); }, false, "", "", "0 link failed"},
      {"one store may be locked", [](Scene& s) { s.AddRxe(1), s.LimitLocked(); }, true, "ibv:rxe0", "--device ibv:rxe0",
       ""},
      {"two may not", [](Scene& s) { s.AddRxe(2), s.LimitLocked(), s.Name("ibv:rxe0,ibv:rxe1"); }, false,
       "ibv:rxe0;ibv:rxe1", "--device ibv:rxe0,ibv:rxe1", "memlock failed"},
      {"a link that is down, where the probe fails as well", [](Scene& s) { s.AddRxe(1), s.TakeDown(); }, false,
       "ibv:rxe0", "", "0 link failed, 0 gid failed, 0 use failed"},
      {"the first that works speaks with the peer", [](Scene& s) { s.AddRxe(2), s.Hang("ibv:rxe0"), s.Meet(); }, true,
       "ibv:rxe0;ibv:rxe1;ibv:rxe1 to 192.0.2.2:7099", "--device ibv:rxe1", "0 use failed"},
      {"a peer that is not reached", [](Scene& s) { s.AddRxe(1), s.Meet(), s.Fail("ibv:rxe0 to 192.0.2.2:7099"); },
       false, "ibv:rxe0;ibv:rxe0 to 192.0.2.2:7099", "--device ibv:rxe0", "peer connection failed"},
      {"a peer where no device works", [](Scene& s) { s.Meet(); }, false, "", "", "devices failed"},
  };
  for (const SceneRow& row : rows) {
    SCOPED_TRACE(row.what);
    Scene scene;
    row.set(scene);
    const auto report = scene.Run();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(Works(*report), row.works) << FormatReport(*report);
    EXPECT_EQ(absl::StrJoin(scene.asked, ";"), row.probed);
    EXPECT_EQ(FlagsForTokd(*report), row.flags);
    EXPECT_EQ(Troubles(*report), row.troubles);
  }
}

std::vector<std::string> Two() { return {"ibv:a", "ibv:b"}; }

TEST(DoctorTest, WhatDoesNotGoTogetherIsRefusedWithARemedy) {
  const struct {
    std::function<void(DoctorSettings&)> change;
    const char* text;
  } rows[] = {
      {[](DoctorSettings& s) { s.devices = Two(), s.peer = kPeer; }, "name one here and one there"},
      {[](DoctorSettings& s) { s.devices = Two(), s.listens = true; }, "name one here and one there"},
      {[](DoctorSettings& s) { s.devices.push_back(s.devices[0]); }, "name each once"},
      {[](DoctorSettings& s) { s.devices.resize(5, "ibv:a"); }, "some at a time"},
      {[](DoctorSettings& s) { s.devices = {"soft:udp@127.0.0.1"}, s.opening.by_tcp = true; }, "leave --cm out"},
      {[](DoctorSettings& s) { s.opening.address = kOwn; }, "--cm tcp and --address IP go together"},
      {[](DoctorSettings& s) { s.opening.by_tcp = true; }, "--cm tcp and --address IP go together"},
      {[](DoctorSettings& s) { s.opening.fabric.pkey_index = 1; }, "--pkey-index 1: goes with --cm tcp"},
      {[](DoctorSettings& s) { s.opening.fabric.router_lid = 5; }, "--router-lid: goes with --cm tcp"},
      {[](DoctorSettings& s) { s.devices = {"soft:udp@127.0.0.1"}, s.opening.fabric.service_level = 3; },
       "leave them out for a software NIC"},
      {[](DoctorSettings& s) { s.devices = {"rxe0"}; }, "use ibv:NAME"},
      {[](DoctorSettings& s) { s.devices = {"ibv:"}; }, ""},
      {[](DoctorSettings& s) { s.devices = {"ibv:rxe0:x"}; }, ""},
      {[](DoctorSettings& s) { s.devices = {"soft:udp@nowhere"}; }, ""},
      {[](DoctorSettings& s) { s.devices = {"soft:"}; }, "use ibv:NAME"},
  };
  for (const auto& row : rows) {
    Scene scene;
    scene.settings.devices = {"ibv:rxe0"};
    row.change(scene.settings);
    const absl::Status status = scene.Run().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.text;
    EXPECT_TRUE(absl::StrContains(status.message(), row.text)) << status;
    EXPECT_TRUE(scene.asked.empty());
  }
}

TEST(DoctorTest, ManyDevicesAreExaminedUpToABound) {
  Scene scene;
  scene.AddRxe(kMaxDevices + 3);
  const auto report = scene.Run();
  EXPECT_EQ(report->devices.size(), kMaxDevices);
  EXPECT_EQ(Troubles(*report), "many devices warning");
}

TEST(DoctorTest, ADeviceIsReportedWithItsDriverItsNetworkDeviceAndItsGids) {
  Scene scene;
  scene.AddRxe(1);
  scene.settings.devices = {"ibv:rxe0:1@0", "soft:udp@127.0.0.1"};
  const auto report = scene.Run();
  EXPECT_EQ(report->devices[0].about, "rdma_rxe on v0");
  EXPECT_EQ(report->devices[0].netdev_mtu, 9000u);
  ASSERT_EQ(report->devices[0].gids.size(), 2u);
  EXPECT_TRUE(report->devices[0].gids[0].chosen);
  EXPECT_EQ(report->devices[1].about, "software NIC");
  scene.settings.devices = {"ibv:rxe7"};
  EXPECT_EQ(scene.Run()->devices[0].findings[0].advice, "there are ibv:rxe0");
}

// Each is a command that works once the names in capitals are filled in.
TEST(AskingCommandTest, SaysAllThatTheOtherHostMustGive) {
  Opening opening;
  EXPECT_EQ(AskingCommand("ibv:rxe0", opening, kPeer), "tok doctor --peer 192.0.2.2:7099");
  EXPECT_EQ(AskingCommand("soft:udp@192.0.2.2", opening, kPeer),
            "tok doctor --peer 192.0.2.2:7099 --device soft:udp@ITS_IP");
  opening.by_tcp = true;
  opening.fabric.service_level = 3;
  EXPECT_EQ(AskingCommand("ibv:rxe0", opening, kPeer),
            "tok doctor --peer 192.0.2.2:7099 --cm tcp --address ITS_IP --service-level 3");
}

}  // namespace
}  // namespace tokamak::cli::doctor
