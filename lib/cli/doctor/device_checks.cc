#include "lib/cli/doctor/device_checks.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/units.h"

namespace tokamak::cli::doctor {

namespace {

namespace ibv = verbs::ibv;

// IPv4, UDP, BTH, RETH and ICRC: what the first packet of a WRITE has around its payload.
constexpr uint32_t kRoceHeaders = 20 + 8 + 12 + 16 + 4;
// Bytes the kernel reserves for the longest headers when it derives a RoCE port's MTU.
constexpr uint32_t kRoceReserve = 96;

constexpr std::array<absl::string_view, 4> kTalkSteps = {"send", "write", "read", "compare"};

bool IsTalk(absl::string_view step) {
  return std::find(kTalkSteps.begin(), kTalkSteps.end(), step) != kTalkSteps.end();
}

// How the last step of a probe went wrong.
std::string Trouble(const ProbeOutcome& probe) {
  const std::string step = probe.FailedStep();
  if (probe.stuck) return absl::StrCat("'", step, "' never returned, and the kernel does not let its process end");
  if (probe.hung) return absl::StrCat("'", step, "' never returned; its process was killed");
  return absl::StrCat("'", step, "' failed: ", probe.failure.message());
}

bool IsSoftRoceElsewhere(const DeviceSituation& situation) {
  return situation.driver == "rdma_rxe" && !situation.in_initial_network;
}

constexpr char kSoftRoceElsewhere[] =
    "Soft-RoCE sends only in the machine's first network namespace: docker run --network host, or siw or soft:udp";

std::string UseAdvice(const DeviceSituation& situation, const ProbeOutcome& self) {
  if (absl::StartsWith(situation.name, "soft:")) {
    return "ip address shows the addresses; where the port is taken (a tokd, or the kernel's Soft-RoCE): "
           "soft:udp@IP:4792";
  }
  if (self.hung) return "the driver hangs: see dmesg; remove the device (rdma link delete) and add it again";
  const std::string step = self.FailedStep();
  if (self.failure.code() == absl::StatusCode::kPermissionDenied) {
    return situation.in_container ? "docker run --device /dev/infiniband, or a device_cgroup_rule 'c 231:* rmw'"
                                  : "the rights of /dev/infiniband, see above";
  }
  if (situation.by_tcp && self.failure.code() == absl::StatusCode::kUnimplemented) return "leave out --cm tcp";
  if (step == "ask" && self.failure.code() == absl::StatusCode::kFailedPrecondition) {
    return "the same --cm on both hosts, and the same version of tok";
  }
  if (situation.by_tcp && step == "listen") return "--address IP: one of this host's; ip address shows them";
  if (step == "inspect" && self.failure.code() == absl::StatusCode::kNotFound) {
    return "apt-get install ibverbs-providers: libibverbs needs the device's provider; rdma link shows what the kernel "
           "has";
  }
  if (self.failure.code() == absl::StatusCode::kUnavailable) return "see 'link' and 'gid' above";
  if (step == "memory") return "raise the limit on locked memory: ulimit -l unlimited, docker: --ulimit memlock=-1";
  if (step == "listen") return "the address must be on an interface that is up: ip address; rdma_ucm must be loaded";
  return "see dmesg; a device that is listed but cannot be used: remove it (rdma link delete) and add it again";
}

std::string ConnectionAdvice(const DeviceSituation& situation) {
  if (IsSoftRoceElsewhere(situation)) return kSoftRoceElsewhere;
  if (situation.by_tcp) {
    return "is --address one of this host's, on an interface that is up? (ip address); a TCP firewall?";
  }
  if (situation.driver == "siw")
    return "siw connects over TCP at the address of its network device: is it up? (ip address)";
  return "is the address on an interface that is up? (ip address; ip neighbour; firewall: UDP port 4791, with software "
         "NICs also 4792)";
}

std::string Rate(double bytes_per_second) {
  return absl::StrCat(base::FormatSize(static_cast<uint64_t>(bytes_per_second)), "/s");
}

Finding Measured(const char* check, const PingPongNumbers& numbers) {
  Finding finding =
      Ok(check, absl::StrCat("SEND of ", kPingBytes, " B: ", base::FormatDuration(numbers.half_round_trip),
                             " half round trip; WRITE ", Rate(numbers.write_rate), ", READ ", Rate(numbers.read_rate),
                             " (", base::FormatSize(kTransferBytes), ", ", kTransfersInFlight, " at once; medians)"));
  finding.numbers = {{"send_bytes", kPingBytes},
                     {"send_half_round_trip_us", static_cast<double>(numbers.half_round_trip.nanoseconds()) * 1e-3},
                     {"send_rounds", numbers.rounds},
                     {"transfer_bytes", kTransferBytes},
                     {"transfers_in_flight", kTransfersInFlight},
                     {"write_bytes_per_second", numbers.write_rate},
                     {"read_bytes_per_second", numbers.read_rate}};
  return finding;
}

// The suffix that names how a connection was made; empty for the usual way, rdma_cm.
const char* Means(const DeviceSituation& situation) { return situation.by_tcp ? " by --cm tcp" : ""; }

Finding Connected(const char* check, const ProbeOutcome& probe, const std::string& whom) {
  if (!probe.numbers.has_value()) return Ok(check, absl::StrCat("connected ", whom));
  const PingPongNumbers& numbers = *probe.numbers;
  Finding finding = Ok(check, absl::StrCat("connected ", whom, " in ", base::FormatDuration(numbers.connected_in),
                                           numbers.path_mtu == 0 ? "" : absl::StrCat(", path MTU ", numbers.path_mtu)));
  finding.numbers = {{"connected_ms", numbers.connected_in.seconds() * 1e3},
                     {"path_mtu_bytes", static_cast<double>(numbers.path_mtu)}};
  return finding;
}

bool Talked(const ProbeOutcome& probe) { return probe.Reached("send"); }

}  // namespace

Finding CheckLink(const PortFacts& port) {
  const NetdevFacts& netdev = port.netdev;
  std::string seen = absl::StrCat(ibv::ToString(port.link), " port ", port.number, " is ", port.state);
  if (!port.physical.empty()) absl::StrAppend(&seen, " (", port.physical, ")");
  if (!netdev.name.empty()) {
    absl::StrAppend(&seen, ", ", netdev.name, " is ",
                    netdev.up     ? "up"
                    : netdev.here ? netdev.state
                                  : "not to be seen here");
  }
  if (!port.rate.empty()) absl::StrAppend(&seen, ", ", port.rate);
  if (!netdev.name.empty() && netdev.here && !netdev.up) {
    return Failed("link", seen, absl::StrCat("ip link set ", netdev.name, " up; if it is up: the cable, the switch"));
  }
  if (!netdev.name.empty() && !netdev.here) {
    return Failed("link", seen,
                  "its network device is in another network namespace: work there (docker run --network host)");
  }
  if (port.state == "ACTIVE") return Ok("link", seen);
  if (port.link == ibv::LinkKind::kInfiniBand && (port.state == "INIT" || port.state == "ARMED")) {
    return Failed("link", seen,
                  "the cable is fine, but no subnet manager answers: start opensm on one host of the fabric");
  }
  return Failed("link", seen, "plug in the cable, or switch the port on; rdma link shows the port");
}

Finding CheckGid(const PortFacts& port, std::optional<uint32_t> index, bool by_tcp, std::vector<GidLine>& lines) {
  const ibv::GidChoice choice = ibv::ChooseGid(port.link, port.gids, index);
  for (const ibv::GidVerdict& verdict : choice.verdicts) {
    // The kernel gives iWARP's entry the type of RoCE, which it is not.
    const char* const type = port.link == ibv::LinkKind::kIwarp ? "iWARP" : ibv::ToString(verdict.entry.type);
    lines.push_back({verdict.entry.index, ibv::GidText(verdict.entry.gid), type, verdict.entry.net_device,
                     verdict.chosen, verdict.reason});
  }
  const std::string netdev = port.netdev.name.empty() ? "its network device" : port.netdev.name;
  const std::string give_address =
      absl::StrCat("ip address add 10.0.0.1/24 dev ", netdev, "; ip link set ", netdev, " up");
  if (const ibv::GidEntry* entry = choice.entry(); entry != nullptr) {
    verbs::Address address;
    address.ip = entry->gid;
    if (port.link == ibv::LinkKind::kRoce && address.is_link_local() && !by_tcp) {
      return Failed("gid",
                    absl::StrCat("index ", entry->index, ", ", ibv::GidText(entry->gid),
                                 ", is link-local: rdma_cm cannot speak from it"),
                    absl::StrCat(give_address, "; or --cm tcp, which does without"));
    }
    Finding finding = Ok("gid", absl::StrCat("index ", entry->index, ", ", ibv::GidText(entry->gid), ", of ",
                                             lines.size(), lines.size() == 1 ? " entry" : " entries"));
    finding.numbers = {{"index", static_cast<double>(entry->index)}};
    return finding;
  }
  if (index.has_value()) {
    return Failed("gid", absl::StrCat("there is no GID with index ", *index),
                  "leave out @INDEX, or choose one of the table");
  }
  if (port.netdev.here && !port.netdev.up) {
    return Failed("gid", absl::StrCat("no entry can be used while ", netdev, " is down"), "see 'link' above");
  }
  return Failed("gid", "no entry can be used: RoCE v2 needs an IP address on a network device that is up",
                give_address);
}

Finding CheckMtu(const PortFacts& port, const ProbeOutcome& self) {
  const auto probed =
      std::find_if(self.ports.begin(), self.ports.end(), [&](const ProbedPort& p) { return p.number == port.number; });
  if (probed == self.ports.end()) return NotApplicable("mtu", "the port could not be asked");
  const uint32_t netdev_mtu = port.netdev.mtu;
  std::string seen = absl::StrCat("path MTU ", probed->active_mtu, " of at most ", probed->max_mtu);
  if (netdev_mtu > 0) absl::StrAppend(&seen, "; ", port.netdev.name, " has MTU ", netdev_mtu);
  Finding finding = Ok("mtu", seen);
  if (port.link == ibv::LinkKind::kRoce && netdev_mtu > 0) {
    if (probed->active_mtu + kRoceHeaders > netdev_mtu) {
      finding = Failed("mtu", seen + ": full packets do not fit, and vanish without an error",
                       absl::StrCat("ip link set ", port.netdev.name, " mtu ", probed->active_mtu + kRoceReserve,
                                    " or more; or add the RDMA device again, it takes its MTU then"));
    } else if (probed->active_mtu < probed->max_mtu) {
      finding.advice = absl::StrCat("faster with ", probed->max_mtu, ": ip link set ", port.netdev.name,
                                    " mtu 9000, on all hosts and switches of the path");
    }
  }
  finding.numbers = {{"active_bytes", static_cast<double>(probed->active_mtu)},
                     {"max_bytes", static_cast<double>(probed->max_mtu)},
                     {"netdev_bytes", static_cast<double>(netdev_mtu)}};
  return finding;
}

Finding CheckUse(const DeviceSituation& situation, const ProbeOutcome& self) {
  if (self.Reached("connect")) {
    return Ok("use",
              absl::StrCat("opened at ", self.address, "; domain, completion queue, memory and queue pair made"));
  }
  if (self.finished) return Ok("use", "opened");
  return Failed("use", Trouble(self), UseAdvice(situation, self));
}

Finding CheckConnection(const DeviceSituation& situation, const ProbeOutcome& self) {
  if (!self.Reached("connect")) return NotApplicable("connection", "not tried: it cannot be used");
  if (Talked(self)) return Connected("connection", self, absl::StrCat("to itself", Means(situation)));
  return Failed("connection", Trouble(self), ConnectionAdvice(situation));
}

Finding CheckPingPong(const DeviceSituation& situation, const ProbeOutcome& self) {
  if (!Talked(self)) return NotApplicable("ping-pong", "not tried: there was no connection");
  if (IsTalk(self.FailedStep())) {
    const std::string advice = IsSoftRoceElsewhere(situation) ? kSoftRoceElsewhere
                               : self.FailedStep() == "send"
                                   ? "a phantom: it connects, but carries nothing; see dmesg"
                                   : "see dmesg; is the MTU of the port larger than of its link?";
    return Failed("ping-pong", Trouble(self), advice);
  }
  if (self.numbers.has_value() && !self.finished) {
    return Warning("ping-pong", absl::StrCat("all passed, but ", Trouble(self)),
                   "see dmesg: the driver hangs when it is left");
  }
  if (!self.numbers.has_value()) return Failed("ping-pong", Trouble(self), "see dmesg");
  return Measured("ping-pong", *self.numbers);
}

Finding CheckPeer(const std::string& host, const ProbeOutcome& peer) {
  if (peer.peer.has_value()) {
    return Ok("peer",
              absl::StrCat(host, " answers over TCP: ", peer.peer->device, " at ", peer.peer->service.ToString()));
  }
  if (!peer.Reached("ask")) return NotApplicable("peer", absl::StrCat("not asked: ", Trouble(peer)));
  return Failed("peer", Trouble(peer),
                absl::StrCat("run tok doctor --listen on ", host, ", and see that no firewall is between"));
}

Finding CheckPeerMtu(uint32_t netdev_mtu, const ProbeOutcome& peer) {
  if (!peer.peer.has_value()) return NotApplicable("mtu", "not known: the peer did not answer");
  const PeerHello& there = *peer.peer;
  const auto one = [](uint32_t active, uint32_t netdev) {
    return netdev == 0 ? absl::StrCat(active) : absl::StrCat(active, " (network device ", netdev, ")");
  };
  const std::string seen = absl::StrCat("path MTU here ", one(peer.active_mtu, netdev_mtu), ", there ",
                                        one(there.active_mtu, there.netdev_mtu));
  const bool same = peer.active_mtu == there.active_mtu &&
                    (netdev_mtu == 0 || there.netdev_mtu == 0 || netdev_mtu == there.netdev_mtu);
  Finding finding =
      same ? Ok("mtu", seen)
           : Warning("mtu", seen, "the smaller one is used; give both sides the same: ip link set DEV mtu 9000");
  finding.numbers = {{"here_active_bytes", static_cast<double>(peer.active_mtu)},
                     {"there_active_bytes", static_cast<double>(there.active_mtu)},
                     {"here_netdev_bytes", static_cast<double>(netdev_mtu)},
                     {"there_netdev_bytes", static_cast<double>(there.netdev_mtu)}};
  return finding;
}

Finding CheckPeerConnection(const DeviceSituation& situation, const ProbeOutcome& peer) {
  if (!peer.peer.has_value()) return NotApplicable("connection", "not tried");
  if (Talked(peer)) {
    return Connected("connection", peer, absl::StrCat("to ", peer.peer->service.ToString(), Means(situation)));
  }
  if (!peer.Reached("connect")) return Failed("connection", Trouble(peer), UseAdvice(situation, peer));
  const std::string advice = IsSoftRoceElsewhere(situation) ? kSoftRoceElsewhere
                             : situation.by_tcp
                                 ? "is the peer's address, to which TCP connects now, reached from here? --address IP "
                                   "there and here; a TCP firewall?"
                                 : "the hosts reach each other over TCP, but not by RDMA: is the peer's address in "
                                   "this device's subnet? firewall: "
                                   "UDP port 4791 (RoCE), TCP (iWARP)";
  return Failed("connection", Trouble(peer), advice);
}

Finding CheckPeerPingPong(const DeviceSituation& situation, const ProbeOutcome& peer) {
  if (!Talked(peer)) return NotApplicable("ping-pong", "not tried: there was no connection");
  if (peer.numbers.has_value()) return Measured("ping-pong", *peer.numbers);
  std::string advice = "firewall, UDP port 4791? or routes that differ by direction";
  if (peer.FailedStep() == "write" || peer.FailedStep() == "read") {
    advice =
        "small messages pass, large ones do not: some link between has a smaller MTU than both ends; ping -M do -s "
        "8000";
  }
  if (IsSoftRoceElsewhere(situation)) advice = kSoftRoceElsewhere;
  return Failed("ping-pong", Trouble(peer), advice);
}

}  // namespace tokamak::cli::doctor
