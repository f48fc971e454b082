#include "lib/cli/doctor/device_checks.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/cli/doctor/expect_finding.h"
#include "tests/cli/doctor/probes.h"

namespace tokamak::cli::doctor {
namespace {

using verbs::ibv::GidEntry;
using verbs::ibv::GidType;
using verbs::ibv::LinkKind;
using Device = DeviceCase;

constexpr auto kGood = Verdict::kOk, kPoor = Verdict::kWarning, kBad = Verdict::kFailed,
               kUntried = Verdict::kNotApplicable;

GidEntry Gid(uint32_t index, const std::string& address, GidType type) {
  GidEntry entry;
  entry.index = index;
  entry.gid = verbs::Address::Parse(address)->ip;
  entry.type = type;
  entry.net_device = "v0";
  entry.net_device_up = true;
  return entry;
}

Device Rxe() {
  Device known;
  known.name = "ibv:rxe0";
  known.driver = "rdma_rxe";
  PortFacts port;
  port.number = 1;
  port.state = "ACTIVE";
  port.physical = "LinkUp";
  port.netdev = {"v0", true, 9000, true, "up"};
  port.gids = {Gid(0, "fe80::1", GidType::kRoceV2), Gid(1, "10.0.0.1", GidType::kRoceV2)};
  known.port = port;
  known.probe = WellProbed();
  return known;
}

void TakeDown(Device& d) {
  d.port->netdev.up = false;
  d.port->netdev.state = "down";
  for (GidEntry& entry : d.port->gids) entry.net_device_up = false;
}
void BeInfiniBand(Device& d, const char* state) {
  d.port->link = LinkKind::kInfiniBand;
  d.port->netdev = {};
  d.port->state = state;
}
void Fail(Device& d, const char* step, const absl::Status& status) { d.probe = FailedIn(step, status); }
void Hang(Device& d, const char* step) { d.probe = HungIn(step); }
void MeetElsewhere(Device& d) {
  d.in_initial_network = false;
  d.in_container = true;
}
void MeetPeer(Device& d, uint32_t active_mtu, uint32_t netdev_mtu) {
  d.peer = "10.0.0.2:7099";
  d.probe.figures.peer = {"ibv:rxe1", active_mtu, netdev_mtu};
}

struct DeviceRow {
  const char* check;
  std::function<void(Device&)> change;  // of a healthy device
  Verdict verdict;
  const char* seen;
  const char* advice;
};

const absl::Status kLate = absl::DeadlineExceededError("nothing came");
const absl::Status kRefused = absl::UnavailableError("the peer refused the connection: nobody listens");

TEST(DeviceChecksTest, EachFindingFollowsFromTheFactsAndTheProbe) {
  const DeviceRow rows[] = {
      {"link", [](Device&) {}, kGood, "port 1 is ACTIVE (LinkUp), v0 is up", ""},
      {"link", [](Device& d) { TakeDown(d); }, kBad, "v0 is down", "ip link set v0 up"},
      {"link",
       [](Device& d) {
         d.port->netdev = {"v0", false, 0, false, ""};
       },
       kBad, "not to be seen here", "another network namespace"},
      {"link", [](Device& d) { BeInfiniBand(d, "INIT"); }, kBad, "INIT", "subnet manager"},
      {"link", [](Device& d) { BeInfiniBand(d, "DOWN"); }, kBad, "DOWN", "cable"},
      {"link", [](Device& d) { d.port.reset(), d.absent = "no rxe0", d.others = "there are rxe1"; }, kBad, "no rxe0",
       "there are rxe1"},

      {"gid", [](Device&) {}, kGood, "index 1, 10.0.0.1, of 2 entries", ""},
      {"gid", [](Device& d) { d.port->gids.pop_back(); }, kBad, "index 0, fe80::1, is link-local",
       "ip address add 10.0.0.1/24 dev v0"},
      {"gid", [](Device& d) { d.port->gids.pop_back(), d.by_tcp = true; }, kGood, "index 0, fe80::1", ""},
      {"gid", [](Device& d) { d.port->gids.pop_back(), BeInfiniBand(d, "ACTIVE"); }, kGood, "index 0, fe80::1", ""},
      {"gid", [](Device& d) { TakeDown(d), d.port->netdev.up = true; }, kBad, "no entry can be used",
       "ip address add 10.0.0.1/24 dev v0"},
      {"gid", [](Device& d) { TakeDown(d); }, kBad, "while v0 is down", "see 'link'"},
      {"gid", [](Device& d) { d.gid_index = 7; }, kBad, "no GID with index 7", "leave out @INDEX"},
      {"gid", [](Device& d) { d.gid_index = 0, d.by_tcp = true; }, kGood, "index 0", ""},

      {"mtu", [](Device&) {}, kGood, "path MTU 4096 of at most 4096; v0 has MTU 9000", ""},
      {"mtu", [](Device& d) { d.port->netdev.mtu = 1500; }, kBad, "vanish without an error", "mtu 4192"},
      {"mtu", [](Device& d) { d.port->netdev.mtu = 4096 + 60; }, kGood, "", ""},
      {"mtu",
       [](Device& d) {
         d.port->netdev.mtu = 1500, d.probe.ports = {{1, 1024, 4096}};
       },
       kGood, "path MTU 1024", "mtu 9000"},
      {"mtu", [](Device& d) { d.probe.ports.clear(); }, kUntried, "could not be asked", ""},
      {"mtu", [](Device& d) { d.name = "soft:udp@10.0.0.1"; }, kGood, "path MTU 4096", ""},

      {"use", [](Device&) {}, kGood, "opened at 10.0.0.1", ""},
      {"use", [](Device& d) { Hang(d, "open"); }, kBad, "'open' never returned; its process was killed",
       "driver hangs"},
      {"use", [](Device& d) { Hang(d, "open"), d.probe.stuck = true; }, kBad, "does not let its process end",
       "driver hangs"},
      {"use", [](Device& d) { Fail(d, "inspect", absl::PermissionDeniedError("not permitted")); }, kBad,
       "not permitted", "see above"},
      {"use", [](Device& d) { MeetElsewhere(d), Fail(d, "inspect", absl::PermissionDeniedError("not permitted")); },
       kBad, "not permitted", "docker run --device"},
      {"use", [](Device& d) { Fail(d, "inspect", absl::NotFoundError("libibverbs has no rxe0")); }, kBad, "no rxe0",
       "ibverbs-providers"},
      {"use", [](Device& d) { Fail(d, "open", absl::UnavailableError("no active port")); }, kBad, "no active port",
       "see 'link'"},
      {"use", [](Device& d) { d.by_tcp = true, Fail(d, "open", absl::UnimplementedError("iWARP")); }, kBad, "iWARP",
       "leave out --cm tcp"},
      {"use", [](Device& d) { Fail(d, "memory", absl::ResourceExhaustedError("ibv_reg_mr: ENOMEM")); }, kBad,
       "'memory' failed", "ulimit -l"},
      {"use", [](Device& d) { Fail(d, "endpoint", absl::InvalidArgumentError("offers 0 READs at once")); }, kBad,
       "0 READs", "dmesg"},
      {"use", [](Device& d) { Fail(d, "open", absl::InvalidArgumentError("--service-level 3")); }, kBad,
       "--service-level 3", "leave out the flag"},
      {"use", [](Device& d) { Fail(d, "open", absl::InternalError("no QP")), d.probe.hung = true; }, kBad,
       "failed: no QP; giving all back never returned", "see dmesg"},
      {"use", [](Device& d) { Fail(d, "listen", absl::UnavailableError("no address")); }, kBad, "no address",
       "an interface that is up"},
      {"use", [](Device& d) { d.by_tcp = true, Fail(d, "listen", absl::InternalError("no address")); }, kBad,
       "no address", "one of this host's"},
      {"use",
       [](Device& d) { d.name = "soft:raw@10.0.0.9", Fail(d, "open", absl::PermissionDeniedError("CAP_NET_RAW")); },
       kBad, "CAP_NET_RAW", "soft:udp@IP needs no rights"},
      {"use", [](Device& d) { d.name = "soft:udp@10.0.0.9", Fail(d, "open", absl::NotFoundError("not ours")); }, kBad,
       "not ours", "ip address shows"},

      {"connection", [](Device&) {}, kGood, "to itself in 12.00 ms", ""},
      {"connection", [](Device& d) { d.by_tcp = true; }, kGood, "to itself by --cm tcp in 12.00 ms", ""},
      {"connection", [](Device& d) { Fail(d, "memory", kLate); }, kUntried, "not tried", ""},
      {"connection", [](Device& d) { Fail(d, "connect", kLate); }, kBad, "'connect' failed: nothing came",
       "ip address"},
      {"connection", [](Device& d) { d.by_tcp = true, Fail(d, "connect", kLate); }, kBad, "", "one of this host's"},
      {"connection", [](Device& d) { d.driver = "siw", Fail(d, "connect", kLate); }, kBad, "", "siw connects over TCP"},
      {"connection", [](Device& d) { MeetElsewhere(d), Fail(d, "connect", kLate); }, kBad, "", "--network host"},

      {"transfers", [](Device&) {}, kGood,
       "call of 64 B: 9.0 us half round trip; EAGER 50 MiB/s; READ 100 MiB/s; WRITE 200 MiB/s (256 KiB, 8 at once; "
       "medians)",
       ""},
      {"transfers", [](Device& d) { Fail(d, "connect", kLate); }, kUntried, "not tried", ""},
      {"transfers", [](Device& d) { Fail(d, "call of 64 B", kLate); }, kBad, "'call of 64 B' failed: nothing came",
       "carries nothing"},
      {"transfers", [](Device& d) { Fail(d, "eager of 64 B", kLate); }, kBad, "'eager of 64 B'", "carries nothing"},
      {"transfers", [](Device& d) { Fail(d, "eager of 256 KiB", kLate); }, kBad, "", "MTU of the port"},
      {"transfers", [](Device& d) { Fail(d, "read of 256 KiB", kLate); }, kBad, "", "READ does not"},
      {"transfers", [](Device& d) { Fail(d, "write of 256 KiB", kLate); }, kBad, "", "WRITE does not"},
      {"transfers", [](Device& d) { Fail(d, "read of 256 KiB", absl::DataLossError("byte 7")); }, kBad, "byte 7",
       "damages bytes"},
      {"transfers", [](Device& d) { Fail(d, "eager of 256 KiB", absl::UnavailableError("RLIMIT_MEMLOCK")); }, kBad, "",
       "ulimit -l"},
      {"transfers", [](Device& d) { Hang(d, "close"); }, kPoor, "all passed, but 'close' never returned", "dmesg"},
      {"transfers", [](Device& d) { MeetElsewhere(d), Fail(d, "call of 64 B", kLate); }, kBad, "", "--network host"},
  };
  for (const DeviceRow& row : rows) {
    Device known = Rxe();
    row.change(known);
    ExpectFinding(CheckDevice(known), row.check, row.verdict, row.seen, row.advice);
  }
}

TEST(DeviceChecksTest, EachFindingWithAPeerFollowsFromTheProbe) {
  const DeviceRow rows[] = {
      {"connection", [](Device& d) { MeetPeer(d, 4096, 9000); }, kGood, "to 10.0.0.2:7099 in 12.00 ms", ""},
      {"connection", [](Device& d) { Fail(d, "connect", kRefused), MeetPeer(d, 0, 0); }, kBad, "nobody listens",
       "run tok doctor --listen at 10.0.0.2:7099, with the same --cm"},
      {"connection", [](Device& d) { Fail(d, "connect", kLate), MeetPeer(d, 0, 0); }, kBad, "", "ping"},
      {"connection", [](Device& d) { d.by_tcp = true, Fail(d, "connect", kLate), MeetPeer(d, 0, 0); }, kBad, "",
       "a TCP firewall?"},
      {"connection",
       [](Device& d) { Fail(d, "connect", absl::FailedPreconditionError("version 9")), MeetPeer(d, 0, 0); }, kBad,
       "version 9", "the same version of tok"},
      {"mtu", [](Device& d) { MeetPeer(d, 4096, 9000); }, kGood,
       "here 4096 (network device 9000), there 4096 (network device 9000), of ibv:rxe1", ""},
      {"mtu", [](Device& d) { MeetPeer(d, 1024, 1500); }, kPoor, "there 1024 (network device 1500)", "mtu 9000"},
      {"mtu", [](Device& d) { MeetPeer(d, 4096, 0); }, kGood, "there 4096", ""},
      {"mtu", [](Device& d) { d.peer = "10.0.0.2:7099"; }, kUntried, "did not answer", ""},
      {"transfers", [](Device& d) { MeetPeer(d, 4096, 9000); }, kGood, "half round trip", ""},
      {"transfers", [](Device& d) { Fail(d, "call of 64 B", kLate), MeetPeer(d, 0, 0); }, kBad, "", "firewall"},
      {"transfers",
       [](Device& d) { Fail(d, "call of 64 B", absl::FailedPreconditionError("no doctor")), MeetPeer(d, 0, 0); }, kBad,
       "no doctor", "tok doctor --listen"},
      {"transfers", [](Device& d) { Fail(d, "eager of 256 KiB", kLate), MeetPeer(d, 4096, 0); }, kBad, "",
       "ping -M do"},
      {"transfers", [](Device& d) { Hang(d, "close"), MeetPeer(d, 4096, 0); }, kGood, "half round trip", ""},
  };
  for (const DeviceRow& row : rows) {
    Device known = Rxe();
    row.change(known);
    ExpectFinding(CheckPeer(known), row.check, row.verdict, row.seen, row.advice);
  }
}

TEST(DeviceChecksTest, OnlyChecksThatConcernTheDeviceAreMade) {
  Device known = Rxe();
  EXPECT_EQ(NamesOf(CheckDevice(known)), "link gid mtu use connection transfers");
  EXPECT_EQ(NamesOf(CheckPeer(known)), "connection mtu transfers");
  known.port.reset();
  EXPECT_EQ(NamesOf(CheckDevice(known)), "link");
  known.name = "soft:udp@10.0.0.1";
  EXPECT_EQ(NamesOf(CheckDevice(known)), "mtu use connection transfers");
}

TEST(DeviceChecksTest, WhatWasMeasuredIsInNumbersToo) {
  const Finding finding = FindingOf(CheckDevice(Rxe()), "transfers");
  ASSERT_EQ(finding.numbers.size(), 8u);
  EXPECT_EQ(finding.numbers[1].first, "call_half_round_trip_us");
  EXPECT_DOUBLE_EQ(finding.numbers[1].second, 9.0);
  EXPECT_EQ(finding.numbers[6].first, "read_bytes_per_second");
}

TEST(GidTableTest, TheChosenEntryIsMarkedWithWhy) {
  Device known = Rxe();
  const std::vector<GidLine> lines = GidTable(known);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_FALSE(lines[0].chosen);
  EXPECT_TRUE(lines[1].chosen);
  EXPECT_FALSE(lines[0].remark.empty());
  EXPECT_EQ(lines[1].type, "RoCE v2");
  known.port->link = LinkKind::kIwarp;
  known.port->gids = {Gid(0, "200:0:7::", GidType::kRoceV1)};
  EXPECT_EQ(GidTable(known)[0].type, "iWARP");
}

}  // namespace
}  // namespace tokamak::cli::doctor
