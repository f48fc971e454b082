#include "lib/cli/doctor/device_checks.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace tokamak::cli::doctor {
namespace {

using verbs::ibv::GidEntry;
using verbs::ibv::GidType;
using verbs::ibv::LinkKind;

void Expect(const Finding& finding, Verdict verdict, const std::string& seen, const std::string& advice) {
  EXPECT_EQ(finding.verdict, verdict) << finding.check << ": " << finding.seen;
  EXPECT_TRUE(absl::StrContains(finding.seen, seen)) << finding.seen;
  EXPECT_TRUE(absl::StrContains(finding.advice, advice)) << finding.advice;
}

const DeviceSituation kRxe = {"ibv:rxe0", "rdma_rxe", true, false};
const DeviceSituation kRxeByTcp = {"ibv:rxe0", "rdma_rxe", true, false, true};
const DeviceSituation kRxeElsewhere = {"ibv:rxe0", "rdma_rxe", false, true};

GidEntry Gid(uint32_t index, const std::string& address, GidType type, bool up) {
  GidEntry entry;
  entry.index = index;
  entry.gid = verbs::Address::Parse(address)->ip;
  entry.type = type;
  entry.net_device = "v0";
  entry.net_device_up = up;
  return entry;
}

PortFacts RocePort() {
  PortFacts port;
  port.number = 1;
  port.state = "ACTIVE";
  port.physical = "LinkUp";
  port.netdev = {"v0", true, 9000, true, "up"};
  port.gids = {Gid(0, "fe80::1", GidType::kRoceV2, true), Gid(1, "10.0.0.1", GidType::kRoceV2, true)};
  return port;
}

// A probe that went well up to and including `steps`.
ProbeOutcome After(const std::vector<std::string>& steps) {
  ProbeOutcome probe;
  probe.steps = steps;
  probe.ports = {{1, 4096, 4096}};
  probe.address = "10.0.0.1";
  probe.active_mtu = 4096;
  return probe;
}

const std::vector<std::string> kAllSteps = {"inspect", "open",       "listen",  "domain", "completion queue",
                                            "memory",  "queue pair", "connect", "send",   "write",
                                            "read",    "compare",    "close"};

std::vector<std::string> StepsTo(const std::string& last) {
  return {kAllSteps.begin(), std::find(kAllSteps.begin(), kAllSteps.end(), last) + 1};
}

ProbeOutcome Well() {
  ProbeOutcome probe = After(kAllSteps);
  probe.finished = true;
  PingPongNumbers numbers;
  numbers.connected_in = base::Milliseconds(12);
  numbers.path_mtu = 4096;
  numbers.half_round_trip = base::Microseconds(9);
  numbers.write_rate = 200 << 20;
  numbers.read_rate = 100 << 20;
  probe.numbers = numbers;
  return probe;
}

ProbeOutcome FailedIn(const std::string& step, const absl::Status& status) {
  ProbeOutcome probe = After(StepsTo(step));
  probe.failure = status;
  return probe;
}

ProbeOutcome HungIn(const std::string& step) {
  ProbeOutcome probe = After(StepsTo(step));
  probe.hung = true;
  return probe;
}

TEST(LinkTest, AnActivePortOnANetworkDeviceThatIsUpIsWell) {
  Expect(CheckLink(RocePort()), Verdict::kOk, "port 1 is ACTIVE (LinkUp), v0 is up", "");
}

TEST(LinkTest, ANetworkDeviceThatIsDownComesBeforeThePort) {
  PortFacts port = RocePort();
  port.state = "DOWN";
  port.netdev.up = false;
  port.netdev.state = "down";
  Expect(CheckLink(port), Verdict::kFailed, "v0 is down", "ip link set v0 up");
}

TEST(LinkTest, AnotherNamespacesNetworkDeviceIsToBeUsedThere) {
  PortFacts port = RocePort();
  port.netdev = {"v0", false, 0, false, ""};
  Expect(CheckLink(port), Verdict::kFailed, "not to be seen here", "another network namespace");
}

TEST(LinkTest, AnInfinibandPortThatWaitsLacksASubnetManager) {
  PortFacts port;
  port.number = 1;
  port.link = LinkKind::kInfiniBand;
  port.state = "INIT";
  Expect(CheckLink(port), Verdict::kFailed, "INIT", "subnet manager");
  port.state = "DOWN";
  Expect(CheckLink(port), Verdict::kFailed, "DOWN", "cable");
}

TEST(GidTest, TheTableIsShownWithTheChosenOneAndWhy) {
  std::vector<GidLine> lines;
  Expect(CheckGid(RocePort(), std::nullopt, /*by_tcp=*/false, lines), Verdict::kOk, "index 1, 10.0.0.1, of 2 entries",
         "");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_FALSE(lines[0].chosen);
  EXPECT_TRUE(lines[1].chosen);
  EXPECT_FALSE(lines[0].remark.empty());
  EXPECT_EQ(lines[1].type, "RoCE v2");
}

TEST(GidTest, ALinkLocalAddressIsEnoughOnlyWithoutRdmaCm) {
  PortFacts port = RocePort();
  port.gids.pop_back();
  std::vector<GidLine> lines;
  Expect(CheckGid(port, std::nullopt, /*by_tcp=*/false, lines), Verdict::kFailed, "index 0, fe80::1, is link-local",
         "ip address add 10.0.0.1/24 dev v0");
  EXPECT_EQ(lines.size(), 1u);
  Expect(CheckGid(port, std::nullopt, /*by_tcp=*/true, lines), Verdict::kOk, "index 0, fe80::1", "");
  port.link = LinkKind::kInfiniBand;
  Expect(CheckGid(port, std::nullopt, /*by_tcp=*/false, lines), Verdict::kOk, "index 0, fe80::1", "");
}

TEST(GidTest, ATableOfWhichNothingCanBeUsedNeedsAnAddress) {
  PortFacts port = RocePort();
  for (GidEntry& entry : port.gids) entry.net_device_up = false;
  std::vector<GidLine> lines;
  Expect(CheckGid(port, std::nullopt, /*by_tcp=*/false, lines), Verdict::kFailed, "no entry can be used",
         "ip address add 10.0.0.1/24 dev v0");
  EXPECT_EQ(lines.size(), 2u);
}

TEST(GidTest, AnUnusableTableOfANetworkDeviceThatIsDownIsTheLinksMatter) {
  PortFacts port = RocePort();
  port.netdev.up = false;
  for (GidEntry& entry : port.gids) entry.net_device_up = false;
  std::vector<GidLine> lines;
  Expect(CheckGid(port, std::nullopt, /*by_tcp=*/false, lines), Verdict::kFailed, "while v0 is down", "see 'link'");
}

TEST(GidTest, TheEntryOfIwarpIsCalledSo) {
  PortFacts port = RocePort();
  port.link = LinkKind::kIwarp;
  port.gids = {Gid(0, "200:0:7::", GidType::kRoceV1, true)};
  std::vector<GidLine> lines;
  Expect(CheckGid(port, std::nullopt, /*by_tcp=*/false, lines), Verdict::kOk, "index 0", "");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].type, "iWARP");
}

TEST(GidTest, AnIndexThatIsNotThereIsSaid) {
  std::vector<GidLine> lines;
  Expect(CheckGid(RocePort(), 7, /*by_tcp=*/false, lines), Verdict::kFailed, "no GID with index 7", "leave out @INDEX");
  lines.clear();
  Expect(CheckGid(RocePort(), 0, /*by_tcp=*/true, lines), Verdict::kOk, "index 0", "");
}

TEST(MtuTest, AFullPacketMustFitTheNetworkDevice) {
  Expect(CheckMtu(RocePort(), Well()), Verdict::kOk, "path MTU 4096 of at most 4096; v0 has MTU 9000", "");
  PortFacts port = RocePort();
  port.netdev.mtu = 1500;
  Expect(CheckMtu(port, Well()), Verdict::kFailed, "vanish without an error", "mtu 4192");
  port.netdev.mtu = 4096 + 60;
  Expect(CheckMtu(port, Well()), Verdict::kOk, "", "");
}

TEST(MtuTest, ASmallerMtuThanThePortCouldHaveIsWellWithAHint) {
  PortFacts port = RocePort();
  port.netdev.mtu = 1500;
  ProbeOutcome probe = Well();
  probe.ports = {{1, 1024, 4096}};
  Expect(CheckMtu(port, probe), Verdict::kOk, "path MTU 1024", "mtu 9000");
}

TEST(MtuTest, APortThatCouldNotBeAskedHasNoMtu) {
  ProbeOutcome probe;
  probe.steps = {"inspect"};
  Expect(CheckMtu(RocePort(), probe), Verdict::kNotApplicable, "could not be asked", "");
}

TEST(ProbeChecksTest, AHealthyDeviceHasThreeFindingsThatAreWell) {
  Expect(CheckUse(kRxe, Well()), Verdict::kOk, "opened at 10.0.0.1", "");
  Expect(CheckConnection(kRxe, Well()), Verdict::kOk, "to itself in 12.00 ms, path MTU 4096", "");
  const Finding measured = CheckPingPong(kRxe, Well());
  Expect(measured, Verdict::kOk,
         "9.0 us half round trip; WRITE 200 MiB/s, READ 100 MiB/s (256 KiB, 8 at once; medians)", "");
  ASSERT_EQ(measured.numbers.size(), 7u);
  EXPECT_EQ(measured.numbers[1].first, "send_half_round_trip_us");
  EXPECT_DOUBLE_EQ(measured.numbers[1].second, 9.0);
}

TEST(ProbeChecksTest, ConnectionsByTcpAreCalledSoAndHaveRemediesOfTheirOwn) {
  Expect(CheckConnection(kRxeByTcp, Well()), Verdict::kOk, "to itself by --cm tcp in 12.00 ms", "");
  Expect(CheckConnection(kRxeByTcp, FailedIn("connect", absl::UnavailableError("nobody"))), Verdict::kFailed, "nobody",
         "one of this host's");
  Expect(CheckUse(kRxeByTcp, FailedIn("open", absl::UnimplementedError("iWARP"))), Verdict::kFailed, "iWARP",
         "leave out --cm tcp");
}

TEST(ProbeChecksTest, WhatWasNotReachedIsNotApplicable) {
  const ProbeOutcome probe = FailedIn("queue pair", absl::InternalError("ibv_create_qp: Invalid argument"));
  Expect(CheckUse(kRxe, probe), Verdict::kFailed, "'queue pair' failed: ibv_create_qp", "dmesg");
  Expect(CheckConnection(kRxe, probe), Verdict::kNotApplicable, "not tried", "");
  Expect(CheckPingPong(kRxe, probe), Verdict::kNotApplicable, "not tried", "");
}

TEST(ProbeChecksTest, ADeviceThatHangsWhenOpenedIsAPhantom) {
  Expect(CheckUse(kRxe, HungIn("open")), Verdict::kFailed, "'open' never returned; its process was killed",
         "driver hangs");
  ProbeOutcome stuck = HungIn("open");
  stuck.stuck = true;
  Expect(CheckUse(kRxe, stuck), Verdict::kFailed, "does not let its process end", "driver hangs");
}

TEST(ProbeChecksTest, AMissingRightIsNamedByWhereWeAre) {
  const ProbeOutcome probe =
      FailedIn("inspect", absl::PermissionDeniedError("ibv_open_device: Operation not permitted"));
  Expect(CheckUse(kRxe, probe), Verdict::kFailed, "not permitted", "see above");
  Expect(CheckUse(kRxeElsewhere, probe), Verdict::kFailed, "not permitted", "docker run --device");
}

TEST(ProbeChecksTest, AProviderThatIsMissingIsToBeInstalled) {
  Expect(CheckUse(kRxe, FailedIn("inspect", absl::NotFoundError("libibverbs has no device rxe0"))), Verdict::kFailed,
         "rxe0", "ibverbs-providers");
}

TEST(ProbeChecksTest, APortThatIsDownIsTheLinksMatter) {
  Expect(CheckUse(kRxe, FailedIn("open", absl::UnavailableError("rxe0 has no active port"))), Verdict::kFailed,
         "no active port", "see 'link'");
}

TEST(ProbeChecksTest, MemoryThatCannotBeLockedLeadsToTheLimit) {
  Expect(CheckUse(kRxe, FailedIn("memory", absl::ResourceExhaustedError("ibv_reg_mr: Cannot allocate memory"))),
         Verdict::kFailed, "'memory' failed", "ulimit -l");
}

TEST(ProbeChecksTest, SoftRoceInANamespaceIsToldToLeaveIt) {
  const auto late = absl::DeadlineExceededError("waited 6 s without success for the connection");
  Expect(CheckConnection(kRxeElsewhere, FailedIn("connect", late)), Verdict::kFailed, "without success",
         "--network host");
  Expect(CheckConnection(kRxe, FailedIn("connect", late)), Verdict::kFailed, "without success", "ip address");
}

TEST(ProbeChecksTest, ADeviceThatConnectsAndCarriesNothingIsAPhantom) {
  const auto late = absl::DeadlineExceededError("waited 5 s without success for the echo of a message");
  const ProbeOutcome probe = FailedIn("send", late);
  Expect(CheckConnection(kRxe, probe), Verdict::kOk, "connected to itself", "");
  Expect(CheckPingPong(kRxe, probe), Verdict::kFailed, "the echo of a message", "carries nothing");
  Expect(CheckPingPong(kRxe, FailedIn("write", late)), Verdict::kFailed, "'write' failed", "MTU");
}

TEST(ProbeChecksTest, ADeviceThatHangsWhenItIsLeftIsAWarning) {
  ProbeOutcome probe = Well();
  probe.finished = false;
  probe.hung = true;
  Expect(CheckPingPong(kRxe, probe), Verdict::kWarning, "all passed, but 'close' never returned", "dmesg");
}

ProbeOutcome WithPeer(ProbeOutcome probe) {
  PeerHello hello;
  hello.device = "ibv:rxe1";
  hello.service = *verbs::Address::Parse("10.0.0.2:4711");
  hello.active_mtu = 4096;
  hello.netdev_mtu = 9000;
  probe.peer = hello;
  probe.steps.insert(probe.steps.begin(), "ask");
  return probe;
}

TEST(PeerChecksTest, AHealthyPeerHasFourFindingsThatAreWell) {
  const ProbeOutcome probe = WithPeer(Well());
  Expect(CheckPeer("host2", probe), Verdict::kOk, "host2 answers over TCP: ibv:rxe1 at 10.0.0.2:4711", "");
  Expect(CheckPeerMtu(9000, probe), Verdict::kOk, "here 4096 (network device 9000), there 4096 (network device 9000)",
         "");
  Expect(CheckPeerConnection(kRxe, probe), Verdict::kOk, "to 10.0.0.2:4711 in 12.00 ms", "");
  Expect(CheckPeerPingPong(kRxe, probe), Verdict::kOk, "half round trip", "");
}

TEST(PeerChecksTest, APeerThatDoesNotAnswerIsToBeStarted) {
  const ProbeOutcome probe = [] {
    ProbeOutcome p;
    p.steps = {"open", "ask"};
    p.failure = absl::UnavailableError("TCP port 7099 of host2: Connection refused");
    return p;
  }();
  Expect(CheckPeer("host2", probe), Verdict::kFailed, "Connection refused", "tok doctor --listen on host2");
  Expect(CheckPeerMtu(9000, probe), Verdict::kNotApplicable, "", "");
  Expect(CheckPeerConnection(kRxe, probe), Verdict::kNotApplicable, "", "");
  Expect(CheckPeerPingPong(kRxe, probe), Verdict::kNotApplicable, "", "");
}

TEST(PeerChecksTest, SidesThatConnectInDifferentWaysAreToldTo) {
  ProbeOutcome probe = After({"inspect", "open", "ask"});
  probe.peer = PeerHello();
  probe.failure = absl::FailedPreconditionError("the peer by --cm rdma");
  Expect(CheckPeerConnection(kRxeByTcp, probe), Verdict::kFailed, "--cm rdma", "the same --cm on both hosts");
}

TEST(PeerChecksTest, DifferentMtusAreAWarning) {
  ProbeOutcome probe = WithPeer(Well());
  probe.peer->active_mtu = 1024;
  probe.peer->netdev_mtu = 1500;
  Expect(CheckPeerMtu(9000, probe), Verdict::kWarning, "there 1024 (network device 1500)", "mtu 9000");
  probe.peer->active_mtu = 4096;
  probe.peer->netdev_mtu = 0;
  Expect(CheckPeerMtu(9000, probe), Verdict::kOk, "there 4096", "");
}

TEST(PeerChecksTest, TcpWithoutRdmaIsAMatterOfTheFabric) {
  const auto late = absl::DeadlineExceededError("connection unreachable");
  Expect(CheckPeerConnection(kRxe, WithPeer(FailedIn("connect", late))), Verdict::kFailed, "unreachable",
         "UDP port 4791");
}

TEST(PeerChecksTest, SmallMessagesThatPassWhereLargeOnesDoNotAreAMatterOfTheMtu) {
  const auto late = absl::DeadlineExceededError("waited 5 s without success for a write of 256 KiB");
  Expect(CheckPeerPingPong(kRxe, WithPeer(FailedIn("write", late))), Verdict::kFailed, "'write' failed", "ping -M do");
  Expect(CheckPeerPingPong(kRxe, WithPeer(FailedIn("send", late))), Verdict::kFailed, "'send' failed", "firewall");
}

}  // namespace
}  // namespace tokamak::cli::doctor
