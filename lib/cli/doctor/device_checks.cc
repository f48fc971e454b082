#include "lib/cli/doctor/device_checks.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/units.h"

namespace tokamak::cli::doctor {

namespace {

namespace ibv = verbs::ibv;

using absl::StrCat;
using Code = absl::StatusCode;

// IPv4, UDP, BTH, RETH and ICRC: what the first packet of a WRITE has around its payload.
constexpr uint32_t kRoceHeaders = 20 + 8 + 12 + 16 + 4;
// Bytes the kernel reserves for the longest headers when it derives a RoCE port's MTU.
constexpr uint32_t kRoceReserve = 96;

constexpr char kSoftRoceElsewhere[] =
    "Soft-RoCE sends only in the machine's first network namespace: docker run --network host, or siw or soft:udp";

bool IsSoft(const DeviceCase& known) { return absl::StartsWith(known.name, "soft:"); }
bool IsUsable(const DeviceCase& known) { return known.probe.Reached("connect"); }
bool IsConnected(const DeviceCase& known) { return known.probe.figures.connected_ns > 0; }

// How the last step of a probe went wrong.
std::string Trouble(const ProbeOutcome& probe) {
  const std::string hung = probe.stuck  ? "never returned, and the kernel does not let its process end"
                           : probe.hung ? "never returned; its process was killed"
                                        : "";
  const std::string step = StrCat("'", probe.FailedStep(), "' ");
  if (probe.failure.ok()) return StrCat(step, hung);
  return StrCat(step, "failed: ", probe.failure.message(), hung.empty() ? "" : StrCat("; giving all back ", hung));
}

// Returns the remedy for the step that failed. The order is from what is certain to what is likely.
std::string Remedy(const DeviceCase& known) {
  const ProbeOutcome& probe = known.probe;
  const std::string step = probe.FailedStep();
  const Code code = probe.failure.code();
  const bool use = !IsUsable(known);
  const bool connect = step == "connect";
  const bool small = absl::StartsWith(step, "call") || step == kPullSteps[0].name;
  // Where a connection has broken because of it, the text alone says so.
  const bool locked = absl::StrContains(probe.failure.message(), "RLIMIT_MEMLOCK");
  const bool refused = absl::StrContains(probe.failure.message(), "refused the connection");
  const bool alone = known.peer.empty();
  const struct {
    bool when;
    std::string remedy;
  } rows[] = {
      {step == "open" && (code == Code::kInvalidArgument || (code == Code::kUnimplemented && !known.by_tcp)),
       "change or leave out the flag that the error names"},
      {use && IsSoft(known) && code == Code::kPermissionDenied,
       "run it as root, or setcap cap_net_raw+ep for tok and tokd; soft:udp@IP needs no rights"},
      {use && IsSoft(known),
       "ip address shows the addresses; where the port is taken (a tokd, or the kernel's Soft-RoCE): soft:udp@IP:4792"},
      {probe.hung && probe.failure.ok(),
       "the driver hangs: see dmesg; remove the device (rdma link delete) and add it again"},
      {use && code == Code::kPermissionDenied,
       known.in_container ? "docker run --device /dev/infiniband, or a device_cgroup_rule 'c 231:* rmw'"
                          : "the rights of /dev/infiniband, see above"},
      {use && known.by_tcp && code == Code::kUnimplemented, "leave out --cm tcp"},
      {step == "listen" && known.by_tcp, "--address IP: one of this host's; ip address shows them"},
      {step == "inspect" && code == Code::kNotFound,
       "apt-get install ibverbs-providers: libibverbs needs the device's provider; rdma link shows what the kernel "
       "has"},
      {step == "memory" || locked,
       "raise the limit on locked memory: ulimit -l unlimited, docker: --ulimit memlock=-1"},
      {step == "listen", "the address must be on an interface that is up: ip address; rdma_ucm must be loaded"},
      {use && code == Code::kUnavailable, "see 'link' and 'gid' above"},
      {use, "see dmesg; a device that is listed but cannot be used: remove it (rdma link delete) and add it again"},

      {known.driver == "rdma_rxe" && !known.in_initial_network, kSoftRoceElsewhere},
      {code == Code::kFailedPrecondition,
       "the same version of tok on both hosts, and at that port tok doctor --listen"},
      {code == Code::kDataLoss, "the device or the path damages bytes: see dmesg; its firmware?"},
      {connect && !alone && refused,
       StrCat("run tok doctor --listen at ", known.peer, ", with the same --cm; it prints the command for this host")},
      {connect && alone && known.by_tcp,
       "is --address one of this host's, on an interface that is up? (ip address); a TCP firewall?"},
      {connect && alone && known.driver == "siw",
       "siw connects over TCP at the address of its network device: is it up? (ip address)"},
      {connect && alone,
       "is the address on an interface that is up? (ip address; ip neighbour; firewall: UDP port 4791, with software "
       "NICs also 4792)"},
      {connect && known.by_tcp,
       "is the peer's --address reached from here? (ping); --address IP there and here; a TCP firewall?"},
      {connect,
       "does ping reach that address, in this device's subnet? is --cm the same there? firewall: UDP port "
       "4791 (RoCE), 4792 (software NICs), TCP (iWARP)"},
      {small && alone, "a phantom: it connects, but carries nothing; see dmesg"},
      {small, "it connects, but carries nothing: firewall, UDP port 4791? or routes that differ by direction"},
      {absl::StartsWith(step, "eager") && alone,
       "small messages pass, large ones do not: is the MTU of the port larger than of its link? see dmesg"},
      {absl::StartsWith(step, "eager"),
       "small messages pass, large ones do not: some link between has a smaller MTU than both ends; ping -M do -s "
       "8000"},
      {absl::StartsWith(step, "read"),
       "messages pass, READ does not: see dmesg; tokd --policy eager does without READ and WRITE"},
      {absl::StartsWith(step, "write"),
       "messages and READ pass, WRITE does not: see dmesg; tokd --policy eager:16KiB,read does without WRITE"},
  };
  const auto row = std::find_if(std::begin(rows), std::end(rows), [](const auto& r) { return r.when; });
  return row == std::end(rows) ? "see dmesg" : row->remedy;
}

Finding CheckLink(const DeviceCase& known) {
  if (!known.port.has_value()) return Failed(known.absent, known.others);
  const PortFacts& port = *known.port;
  const NetdevFacts& netdev = port.netdev;
  const bool below = !netdev.name.empty();
  const std::string state = netdev.up ? "up" : netdev.here ? netdev.state : "not to be seen here";
  const std::string seen =
      StrCat(ibv::ToString(port.link), " port ", port.number, " is ", port.state,
             port.physical.empty() ? "" : StrCat(" (", port.physical, ")"),
             below ? StrCat(", ", netdev.name, " is ", state) : "", port.rate.empty() ? "" : StrCat(", ", port.rate));
  return FirstOf({
      {below && netdev.here && !netdev.up,
       Failed(seen, StrCat("ip link set ", netdev.name, " up; if it is up: the cable, the switch"))},
      {below && !netdev.here,
       Failed(seen, "its network device is in another network namespace: work there (docker run --network host)")},
      {port.state == "ACTIVE", Ok(seen)},
      {port.link == ibv::LinkKind::kInfiniBand && (port.state == "INIT" || port.state == "ARMED"),
       Failed(seen, "the cable is fine, but no subnet manager answers: start opensm on one host of the fabric")},
      {true, Failed(seen, "plug in the cable, or switch the port on; rdma link shows the port")},
  });
}

Finding CheckGid(const DeviceCase& known) {
  const PortFacts& port = *known.port;
  const ibv::GidChoice choice = ibv::ChooseGid(port.link, port.gids, known.gid_index);
  const ibv::GidEntry* const entry = choice.entry();
  verbs::Address address;
  if (entry != nullptr) address.ip = entry->gid;
  const std::string seen = entry == nullptr ? "" : StrCat("index ", entry->index, ", ", ibv::GidText(entry->gid));
  const std::string netdev = port.netdev.name.empty() ? "its network device" : port.netdev.name;
  const std::string give_address = StrCat("ip address add 10.0.0.1/24 dev ", netdev, "; ip link set ", netdev, " up");
  const size_t entries = choice.verdicts.size();
  Finding finding = FirstOf({
      {entry != nullptr && port.link == ibv::LinkKind::kRoce && address.is_link_local() && !known.by_tcp,
       Failed(StrCat(seen, ", is link-local: rdma_cm cannot speak from it"),
              StrCat(give_address, "; or --cm tcp, which does without"))},
      {entry != nullptr, Ok(StrCat(seen, ", of ", entries, entries == 1 ? " entry" : " entries"))},
      {known.gid_index.has_value(), Failed(StrCat("there is no GID with index ", known.gid_index.value_or(0)),
                                           "leave out @INDEX, or choose one of the table")},
      {port.netdev.here && !port.netdev.up,
       Failed(StrCat("no entry can be used while ", netdev, " is down"), "see 'link' above")},
      {true, Failed("no entry can be used: RoCE v2 needs an IP address on a network device that is up", give_address)},
  });
  if (finding.verdict == Verdict::kOk) finding.numbers = {{"index", static_cast<double>(entry->index)}};
  return finding;
}

// Does the port's MTU fit what its network device carries? Packets that do not fit vanish without
// an error.
Finding CheckMtu(const DeviceCase& known) {
  if (IsSoft(known)) {
    const uint32_t mtu = known.probe.active_mtu;
    return mtu == 0 ? NotApplicable("not known: it could not be opened") : Ok(StrCat("path MTU ", mtu));
  }
  const PortFacts& port = *known.port;
  const std::vector<ProbedPort>& ports = known.probe.ports;
  const auto probed =
      std::find_if(ports.begin(), ports.end(), [&](const ProbedPort& p) { return p.number == port.number; });
  if (probed == ports.end()) return NotApplicable("the port could not be asked");
  const uint32_t netdev_mtu = port.netdev.mtu;
  const std::string& netdev = port.netdev.name;
  const std::string seen = StrCat("path MTU ", probed->active_mtu, " of at most ", probed->max_mtu,
                                  netdev_mtu > 0 ? StrCat("; ", netdev, " has MTU ", netdev_mtu) : "");
  const bool known_below = port.link == ibv::LinkKind::kRoce && netdev_mtu > 0;
  Finding finding = FirstOf({
      {known_below && probed->active_mtu + kRoceHeaders > netdev_mtu,
       Failed(StrCat(seen, ": full packets do not fit, and vanish without an error"),
              StrCat("ip link set ", netdev, " mtu ", probed->active_mtu + kRoceReserve,
                     " or more; or add the RDMA device again, it takes its MTU then"))},
      {known_below && probed->active_mtu < probed->max_mtu,
       Ok(seen, StrCat("faster with ", probed->max_mtu, ": ip link set ", netdev,
                       " mtu 9000, on all hosts and switches of the path"))},
      {true, Ok(seen)},
  });
  finding.numbers = {{"active_bytes", static_cast<double>(probed->active_mtu)},
                     {"max_bytes", static_cast<double>(probed->max_mtu)},
                     {"netdev_bytes", static_cast<double>(netdev_mtu)}};
  return finding;
}

// Can it be opened, and everything be made on it? A device that cannot is a phantom: listed, but of
// no use.
Finding CheckUse(const DeviceCase& known) {
  return FirstOf({
      {IsUsable(known), Ok(StrCat("opened at ", known.probe.address, "; domain, memory and endpoint made"))},
      {true, Failed(Trouble(known.probe), Remedy(known))},
  });
}

// Does it connect to itself, or to the peer?
Finding CheckConnection(const DeviceCase& known) {
  const int64_t took = known.probe.figures.connected_ns;
  Finding finding = FirstOf({
      {IsConnected(known),
       Ok(StrCat("connected to ", known.peer.empty() ? "itself" : known.peer, known.by_tcp ? " by --cm tcp" : "",
                 " in ", base::FormatDuration(base::Nanoseconds(took))))},
      {!IsUsable(known) && known.peer.empty(), NotApplicable("not tried: it cannot be used")},
      {true, Failed(Trouble(known.probe), Remedy(known))},
  });
  if (IsConnected(known)) finding.numbers = {{"connected_ms", static_cast<double>(took) * 1e-6}};
  return finding;
}

Finding CheckPeerMtu(const DeviceCase& known) {
  const DeviceWords& there = known.probe.figures.peer;
  const DeviceWords here = {"", known.probe.active_mtu, known.port.has_value() ? known.port->netdev.mtu : 0};
  const auto one = [](const DeviceWords& words) {
    return StrCat(words.active_mtu, words.netdev_mtu == 0 ? "" : StrCat(" (network device ", words.netdev_mtu, ")"));
  };
  const std::string seen = StrCat("path MTU here ", one(here), ", there ", one(there), ", of ", there.device);
  const bool same = here.active_mtu == there.active_mtu &&
                    (here.netdev_mtu == 0 || there.netdev_mtu == 0 || here.netdev_mtu == there.netdev_mtu);
  if (there.device.empty()) return NotApplicable("not known: the peer did not answer");
  Finding finding =
      same ? Ok(seen) : Warning(seen, "the smaller one is used; give both sides the same: ip link set DEV mtu 9000");
  finding.numbers = {{"here_active_bytes", static_cast<double>(here.active_mtu)},
                     {"there_active_bytes", static_cast<double>(there.active_mtu)},
                     {"here_netdev_bytes", static_cast<double>(here.netdev_mtu)},
                     {"there_netdev_bytes", static_cast<double>(there.netdev_mtu)}};
  return finding;
}

// Do calls, and objects by each protocol, pass?
Finding CheckTransfers(const DeviceCase& known) {
  const ProbeOutcome& probe = known.probe;
  const PullFigures& figures = probe.figures;
  std::string seen =
      StrCat("call of ", kCallBytes, " B: ", base::FormatDuration(base::Nanoseconds(figures.half_round_trip_ns)),
             " half round trip");
  Finding measured = Ok("");
  measured.numbers = {{"call_bytes", kCallBytes},
                      {"call_half_round_trip_us", static_cast<double>(figures.half_round_trip_ns) * 1e-3},
                      {"calls", figures.calls},
                      {"transfer_bytes", kObjectBytes},
                      {"transfers_in_flight", kObjectsAtOnce}};
  for (const PullStep& step : kPullSteps) {
    const auto rate = figures.rates.find(step.figure == nullptr ? "" : step.figure);
    if (rate == figures.rates.end()) continue;
    absl::StrAppend(&seen, "; ", absl::AsciiStrToUpper(step.figure), " ",
                    base::FormatSize(static_cast<uint64_t>(rate->second)), "/s");
    measured.numbers.emplace_back(StrCat(step.figure, "_bytes_per_second"), rate->second);
  }
  measured.seen = StrCat(seen, " (", base::FormatSize(kObjectBytes), ", ", kObjectsAtOnce, " at once; medians)");
  return FirstOf({
      {!IsConnected(known), NotApplicable("not tried: there was no connection")},
      {probe.Reached("close") && !probe.finished && known.peer.empty(),
       Warning(StrCat("all passed, but ", Trouble(probe)), "see dmesg: the driver hangs when it is left")},
      {!probe.Reached("close"), Failed(Trouble(probe), Remedy(known))},
      {true, measured},
  });
}

bool IsIbv(const DeviceCase& known) { return !IsSoft(known); }
bool HasPort(const DeviceCase& known) { return known.port.has_value(); }
bool IsThere(const DeviceCase& known) { return IsSoft(known) || HasPort(known); }

constexpr Check<DeviceCase> kOfDevice[] = {
    {"link", IsIbv, CheckLink},
    {"gid", HasPort, CheckGid},
    {"mtu", IsThere, CheckMtu},
    {"use", IsThere, CheckUse},
    {"connection", IsThere, CheckConnection},
    {"transfers", IsThere, CheckTransfers},
};
constexpr Check<DeviceCase> kWithPeer[] = {
    {"connection", IsThere, CheckConnection}, {"mtu", IsThere, CheckPeerMtu}, {"transfers", IsThere, CheckTransfers}};

}  // namespace

std::vector<GidLine> GidTable(const DeviceCase& known) {
  std::vector<GidLine> lines;
  if (!known.port.has_value()) return lines;
  const ibv::LinkKind link = known.port->link;
  for (const ibv::GidVerdict& verdict : ibv::ChooseGid(link, known.port->gids, known.gid_index).verdicts) {
    // The kernel gives iWARP's entry the type of RoCE, which it is not.
    const char* const type = link == ibv::LinkKind::kIwarp ? "iWARP" : ibv::ToString(verdict.entry.type);
    lines.push_back({verdict.entry.index, ibv::GidText(verdict.entry.gid), type, verdict.entry.net_device,
                     verdict.chosen, verdict.reason});
  }
  return lines;
}

std::vector<Finding> CheckDevice(const DeviceCase& known) { return RunChecks(kOfDevice, known); }
std::vector<Finding> CheckPeer(const DeviceCase& known) { return RunChecks(kWithPeer, known); }

}  // namespace tokamak::cli::doctor
