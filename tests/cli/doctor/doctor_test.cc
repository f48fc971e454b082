// The whole examination, on machines that are folders and with probes whose outcomes the test
// decides.
#include "lib/cli/doctor/doctor.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/cli/doctor/listen.h"
#include "tests/cli/doctor/fake_machine.h"

namespace tokamak::cli::doctor {
namespace {

ProbeOutcome WellProbed() {
  ProbeOutcome probe;
  probe.steps = {"inspect", "open", "listen", "domain", "completion queue", "memory", "queue pair",
                 "connect", "send", "write",  "read",   "compare",          "close"};
  probe.finished = true;
  probe.ports = {{1, 4096, 4096}};
  probe.address = "10.0.0.1";
  probe.active_mtu = 4096;
  probe.numbers = PingPongNumbers();
  return probe;
}

ProbeOutcome Hung() {
  ProbeOutcome probe;
  probe.steps = {"inspect", "open"};
  probe.hung = true;
  return probe;
}

ProbeOutcome WellWithPeer() {
  ProbeOutcome probe = WellProbed();
  probe.steps.insert(probe.steps.begin() + 2, "ask");
  probe.peer = PeerHello();
  probe.peer->active_mtu = 4096;
  probe.peer->netdev_mtu = 9000;
  return probe;
}

// WellProbed, unless the test says otherwise for a device; remembers what was asked.
class FakeProber final : public Prober {
 public:
  ProbeOutcome Probe(const ProbeRequest& request) override {
    asked.push_back(request.peer.empty() ? request.device : request.device + " to " + request.peer);
    if (request.by_tcp) asked.back() += " by tcp at " + request.address.ToString();
    if (const std::string fabric = FlagsOf(request.fabric); !fabric.empty()) asked.back() += " " + fabric;
    const auto outcome = outcomes.find(asked.back());
    if (outcome != outcomes.end()) return outcome->second;
    return request.peer.empty() ? WellProbed() : WellWithPeer();
  }

  std::map<std::string, ProbeOutcome> outcomes;
  std::vector<std::string> asked;
};

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() { machine_.BeHealthy(); }

  Report Run() {
    auto report = Examine(settings_, machine_.files(), prober_);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : Report();
  }

  static Verdict VerdictOf(const std::vector<Finding>& findings, const std::string& check) {
    for (const Finding& finding : findings) {
      if (finding.check == check) return finding.verdict;
    }
    ADD_FAILURE() << "no finding " << check;
    return Verdict::kNotApplicable;
  }

  FakeMachine machine_;
  FakeProber prober_;
  DoctorSettings settings_;
};

TEST_F(DoctorTest, AHealthyMachineWithOneDeviceWorksAndEverythingIsLookedAt) {
  machine_.AddRxe("rxe0", "v0");
  const Report report = Run();
  EXPECT_TRUE(Works(report)) << FormatReport(report);
  EXPECT_EQ(prober_.asked, (std::vector<std::string>{"ibv:rxe0"}));
  for (const char* check : {"modules", "devices", "permission", "memlock", "network"}) {
    EXPECT_EQ(VerdictOf(report.machine, check), Verdict::kOk) << check;
  }
  ASSERT_EQ(report.devices.size(), 1u);
  for (const char* check : {"link", "gid", "mtu", "use", "connection", "ping-pong"}) {
    EXPECT_EQ(VerdictOf(report.devices[0].findings, check), Verdict::kOk) << check;
  }
  EXPECT_EQ(report.devices[0].about, "rdma_rxe on v0");
  EXPECT_EQ(report.devices[0].gids.size(), 2u);
}

TEST_F(DoctorTest, WithoutAnyDeviceItDoesNotWork) {
  const Report report = Run();
  EXPECT_FALSE(Works(report));
  EXPECT_EQ(VerdictOf(report.machine, "devices"), Verdict::kFailed);
  EXPECT_TRUE(prober_.asked.empty());
}

TEST_F(DoctorTest, APhantomIsShownAndTheHealthyDeviceBesideItChosen) {
  machine_.AddRxe("rxe0", "v0");
  machine_.AddRxe("rxe1", "v1");
  prober_.outcomes["ibv:rxe0"] = Hung();
  const Report report = Run();
  EXPECT_TRUE(Works(report));
  EXPECT_EQ(WorkingDevice(report)->name, "ibv:rxe1");
  EXPECT_EQ(VerdictOf(report.devices[0].findings, "use"), Verdict::kFailed);
}

TEST_F(DoctorTest, OnlyTheNamedDeviceIsExamined) {
  machine_.AddRxe("rxe0", "v0");
  machine_.AddRxe("rxe1", "v1");
  settings_.devices = {"ibv:rxe0:1@0"};
  prober_.outcomes["ibv:rxe0:1@0"] = Hung();
  const Report report = Run();
  EXPECT_FALSE(Works(report)) << "the healthy one was not asked for";
  EXPECT_EQ(prober_.asked, (std::vector<std::string>{"ibv:rxe0:1@0"}));
  EXPECT_TRUE(report.devices[0].gids[0].chosen);
}

TEST_F(DoctorTest, OfSeveralNamedDevicesEachMustWork) {
  for (const char* name : {"rxe0", "rxe1", "rxe2"}) machine_.AddRxe(name, std::string("v") + name[3]);
  settings_.devices = {"ibv:rxe2", "ibv:rxe0"};
  Report report = Run();
  EXPECT_TRUE(Works(report)) << FormatReport(report);
  EXPECT_EQ(prober_.asked, settings_.devices);
  EXPECT_EQ(FlagsForTokd(report), "--device ibv:rxe2,ibv:rxe0");
  prober_.outcomes["ibv:rxe0"] = Hung();
  report = Run();
  EXPECT_FALSE(Works(report)) << "tokd would not come up with both";
  EXPECT_EQ(FlagsForTokd(report), "");
}

TEST_F(DoctorTest, RealAndSoftwareDevicesAreExaminedTogether) {
  machine_.AddRxe("rxe0", "v0");
  settings_.devices = {"ibv:rxe0", "soft:udp@127.0.0.1"};
  const Report report = Run();
  EXPECT_TRUE(Works(report)) << FormatReport(report);
  EXPECT_EQ(VerdictOf(report.machine, "memlock"), Verdict::kOk);
  EXPECT_EQ(VerdictOf(report.machine, "udp buffers"), Verdict::kOk);
  EXPECT_EQ(report.devices.size(), 2u);
}

TEST_F(DoctorTest, ConnectionsByTcpNeedNothingOfTheKernelsManager) {
  machine_.AddRxe("rxe0", "v0");
  machine_.Remove("/sys/class/misc/rdma_cm");
  machine_.Remove("/dev/infiniband/rdma_cm");
  settings_.peer = "host2";
  EXPECT_FALSE(Works(Run()));
  prober_.asked.clear();
  settings_.by_tcp = true;
  settings_.address = *verbs::Address::Parse("192.0.2.1");
  const Report report = Run();
  EXPECT_TRUE(Works(report)) << FormatReport(report);
  EXPECT_EQ(prober_.asked,
            (std::vector<std::string>{"ibv:rxe0 by tcp at 192.0.2.1", "ibv:rxe0 to host2 by tcp at 192.0.2.1"}));
  EXPECT_EQ(FlagsForTokd(report), "--device ibv:rxe0 --cm tcp");
}

TEST_F(DoctorTest, WhatTheFabricWantsIsTriedAndPartOfTheVerdict) {
  machine_.AddRxe("rxe0", "v0");
  settings_.by_tcp = true;
  settings_.address = *verbs::Address::Parse("192.0.2.1");
  settings_.fabric.service_level = 3;
  settings_.fabric.traffic_class = 104;
  const Report report = Run();
  EXPECT_EQ(prober_.asked,
            (std::vector<std::string>{"ibv:rxe0 by tcp at 192.0.2.1 --service-level 3 --traffic-class 104"}));
  EXPECT_EQ(FlagsForTokd(report), "--device ibv:rxe0 --cm tcp --service-level 3 --traffic-class 104");
}

TEST_F(DoctorTest, ATrafficClassGoesWithEveryWayOfConnecting) {
  machine_.AddRxe("rxe0", "v0");
  settings_.fabric.traffic_class = 0;  // another than what the fabric would say
  const Report report = Run();
  EXPECT_EQ(prober_.asked, (std::vector<std::string>{"ibv:rxe0 --traffic-class 0"}));
  EXPECT_EQ(FlagsForTokd(report), "--device ibv:rxe0 --traffic-class 0");
}

TEST_F(DoctorTest, AClosedDeviceCountsWhereItIsNamed) {
  machine_.AddRxe("rxe0", "v0");
  machine_.AddRxe("rxe1", "v1");
  machine_.Remove("/dev/infiniband/uverbs1");
  machine_.Link("/dev/infiniband/uverbs1", "/nowhere");  // which nobody may open, not even root
  EXPECT_EQ(VerdictOf(Run().machine, "permission"), Verdict::kWarning);
  settings_.devices = {"ibv:rxe0:1@1"};
  const Report report = Run();
  EXPECT_EQ(VerdictOf(report.machine, "permission"), Verdict::kOk);
  EXPECT_TRUE(Works(report)) << FormatReport(report);
  settings_.devices = {"ibv:rxe0", "ibv:rxe1"};
  EXPECT_EQ(VerdictOf(Run().machine, "permission"), Verdict::kFailed);
}

TEST_F(DoctorTest, WhatDoesNotGoTogetherIsRefusedWithARemedy) {
  const auto refusal = [&](const std::function<void(DoctorSettings&)>& change) {
    DoctorSettings settings;
    settings.devices = {"ibv:rxe0"};
    change(settings);
    const absl::Status status = Examine(settings, machine_.files(), prober_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal([](DoctorSettings& s) {
                s.devices = {"ibv:a", "ibv:b"};
                s.peer = "host2";
              }),
              HasSubstr("name one here and one there"));
  EXPECT_THAT(refusal([](DoctorSettings& s) {
                s.devices = {"ibv:a", "ibv:b"};
                s.listens = true;
              }),
              HasSubstr("name one here and one there"));
  EXPECT_THAT(refusal([](DoctorSettings& s) { s.devices = {"ibv:a", "ibv:a"}; }), HasSubstr("name each once"));
  EXPECT_THAT(refusal([](DoctorSettings& s) {
                s.devices = {"ibv:a", "ibv:b", "ibv:c", "ibv:d", "ibv:e"};
              }),
              HasSubstr("some at a time"));
  EXPECT_THAT(refusal([](DoctorSettings& s) {
                s.devices = {"soft:udp@127.0.0.1"};
                s.by_tcp = true;
              }),
              HasSubstr("leave --cm out"));
  EXPECT_THAT(refusal([](DoctorSettings& s) { s.address = *verbs::Address::Parse("192.0.2.1"); }),
              HasSubstr("--cm tcp and --address IP go together"));
  EXPECT_THAT(refusal([](DoctorSettings& s) { s.by_tcp = true; }), HasSubstr("--cm tcp and --address IP go together"));
  EXPECT_THAT(refusal([](DoctorSettings& s) { s.fabric.pkey_index = 1; }),
              HasSubstr("--pkey-index 1: goes with --cm tcp"));
  EXPECT_TRUE(prober_.asked.empty());
}

TEST_F(DoctorTest, ANamedDeviceThatIsNotThereIsNotProbed) {
  machine_.AddRxe("rxe0", "v0");
  settings_.devices = {"ibv:rxe7"};
  Report report = Run();
  EXPECT_FALSE(Works(report));
  EXPECT_EQ(report.devices[0].findings[0].advice, "there are ibv:rxe0");
  settings_.devices = {"ibv:rxe0:2"};
  report = Run();
  EXPECT_FALSE(Works(report));
  EXPECT_EQ(report.devices[0].findings[0].seen, "rxe0 has no port 2");
  EXPECT_TRUE(prober_.asked.empty());
}

TEST_F(DoctorTest, TheStoreIsHeldAgainstTheLimitOnLockedMemory) {
  machine_.AddRxe("rxe0", "v0");
  machine_.PutLockLimit("1073741824", "1073741824");
  EXPECT_TRUE(Works(Run()));
  settings_.store = uint64_t{1} << 30;
  const Report report = Run();
  EXPECT_FALSE(Works(report));
  EXPECT_EQ(VerdictOf(report.machine, "memlock"), Verdict::kFailed);
}

TEST_F(DoctorTest, ALinkThatIsDownIsFoundThoughTheProbeFailsAsWell) {
  machine_.AddRxe("rxe0", "v0");
  machine_.PutState("rxe0", "1: DOWN", "3: Disabled");
  machine_.PutNetdev("v0", "down", 9000, "02:00:00:00:00:01");
  ProbeOutcome probe = Hung();
  probe.hung = false;
  probe.failure = absl::UnavailableError("no GID is usable");
  prober_.outcomes["ibv:rxe0"] = probe;
  const Report report = Run();
  EXPECT_EQ(VerdictOf(report.devices[0].findings, "link"), Verdict::kFailed);
  EXPECT_EQ(VerdictOf(report.devices[0].findings, "gid"), Verdict::kFailed);
  EXPECT_EQ(VerdictOf(report.devices[0].findings, "use"), Verdict::kFailed);
}

TEST_F(DoctorTest, TheSoftwareNicNeedsNothingOfTheKernelsRdma) {
  FakeMachine bare;
  bare.Put("/proc/sys/net/core/rmem_max", "212992");
  settings_.devices = {"soft:udp@127.0.0.1"};
  const auto report = Examine(settings_, bare.files(), prober_);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(Works(*report)) << FormatReport(*report);
  EXPECT_EQ(VerdictOf(report->machine, "udp buffers"), Verdict::kWarning);
  EXPECT_EQ(VerdictOf(report->devices[0].findings, "ping-pong"), Verdict::kOk);
}

TEST_F(DoctorTest, ThePeerIsAskedFromTheFirstDeviceThatWorks) {
  machine_.AddRxe("rxe0", "v0");
  machine_.AddRxe("rxe1", "v1");
  prober_.outcomes["ibv:rxe0"] = Hung();
  settings_.peer = "host2";
  const Report report = Run();
  EXPECT_EQ(prober_.asked, (std::vector<std::string>{"ibv:rxe0", "ibv:rxe1", "ibv:rxe1 to host2"}));
  EXPECT_TRUE(Works(report));
  EXPECT_EQ(VerdictOf(report.with_peer, "mtu"), Verdict::kOk);
  EXPECT_EQ(VerdictOf(report.with_peer, "ping-pong"), Verdict::kOk);
}

TEST_F(DoctorTest, APeerThatIsNotReachedIsAFailure) {
  machine_.AddRxe("rxe0", "v0");
  settings_.peer = "host2";
  ProbeOutcome probe;
  probe.steps = {"inspect", "open", "ask"};
  probe.failure = absl::UnavailableError("Connection refused");
  prober_.outcomes["ibv:rxe0 to host2"] = probe;
  const Report report = Run();
  EXPECT_FALSE(Works(report));
  EXPECT_EQ(VerdictOf(report.with_peer, "peer"), Verdict::kFailed);
}

TEST_F(DoctorTest, WithoutADeviceThatWorksThePeerIsNotAsked) {
  settings_.peer = "host2";
  const Report report = Run();
  EXPECT_EQ(VerdictOf(report.with_peer, "peer"), Verdict::kNotApplicable);
  EXPECT_TRUE(prober_.asked.empty());
}

TEST_F(DoctorTest, ManyDevicesAreExaminedUpToABound) {
  for (size_t i = 0; i < kMaxDevices + 3; ++i) machine_.AddRxe(absl::StrCat("rxe", i), absl::StrCat("v", i));
  const Report report = Run();
  EXPECT_EQ(report.devices.size(), kMaxDevices);
  EXPECT_EQ(VerdictOf(report.machine, "many devices"), Verdict::kWarning);
}

TEST_F(DoctorTest, NamesOfNoDeviceAreRefused) {
  for (const char* name : {"rxe0", "ibv:", "ibv:rxe0:x", "soft:udp@nowhere", "soft:"}) {
    settings_.devices = {name};
    EXPECT_EQ(Examine(settings_, machine_.files(), prober_).status().code(), absl::StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_TRUE(prober_.asked.empty());
}

TEST_F(DoctorTest, TheMtuOfTheNetworkDeviceIsFoundForWhoListens) {
  machine_.AddRxe("rxe0", "v0");
  EXPECT_EQ(NetdevMtuOf("ibv:rxe0", machine_.files()), 9000u);
  EXPECT_EQ(NetdevMtuOf("ibv:rxe7", machine_.files()), 0u);
  EXPECT_EQ(NetdevMtuOf("soft:udp@127.0.0.1", machine_.files()), 0u);
}

TEST_F(DoctorTest, TheStoreIsLockedOnceForEachDeviceThatIsNamed) {
  const auto memlock = [&](const std::vector<std::string>& devices) {
    settings_.devices = devices;
    for (const Finding& finding : Run().machine) {
      if (finding.check == "memlock") return finding.numbers.front().second;
    }
    return 0.0;
  };
  const double store = static_cast<double>(settings_.store);
  const double one = memlock({});
  EXPECT_GT(one, store);
  EXPECT_EQ(memlock({"ibv:rxe0"}), one);
  EXPECT_EQ(memlock({"ibv:rxe0", "soft:udp@127.0.0.1"}), one) << "the software NIC locks nothing";
  EXPECT_EQ(memlock({"ibv:rxe0", "ibv:rxe1"}), one + store);
}

// Each is a command that works once the names in capitals are filled in.
TEST(AskingCommandTest, SaysAllThatTheOtherHostMustGive) {
  ListenSettings settings;
  settings.device = "ibv:rxe0";
  EXPECT_EQ(AskingCommand(settings, kPeerPort), "tok doctor --peer THIS_HOST");
  EXPECT_EQ(AskingCommand(settings, 7100), "tok doctor --peer THIS_HOST --port 7100");
  settings.by_tcp = true;
  EXPECT_EQ(AskingCommand(settings, kPeerPort), "tok doctor --peer THIS_HOST --cm tcp --address ITS_IP");
  settings.fabric.service_level = 3;
  EXPECT_EQ(AskingCommand(settings, kPeerPort),
            "tok doctor --peer THIS_HOST --cm tcp --address ITS_IP --service-level 3");
  settings.fabric.service_level.reset();
  settings.by_tcp = false;
  settings.device = "soft:udp@10.0.0.1";
  EXPECT_EQ(AskingCommand(settings, kPeerPort), "tok doctor --peer THIS_HOST --device soft:udp@ITS_IP");
}

}  // namespace
}  // namespace tokamak::cli::doctor
