#include "lib/cli/doctor/doctor.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/cli/doctor/device_checks.h"
#include "lib/cli/doctor/machine_checks.h"
#include "lib/transport/limits.h"
#include "lib/verbs/ibv/translation/device_name.h"
#include "lib/verbs/soft/udp/udp_fabric.h"

namespace tokamak::cli::doctor {

namespace {

using absl::StrCat;

bool IsSoft(const std::string& device) { return verbs::soft::IsUdpDevice(device); }

// The port that is named, or else the first that is active, or at least the first; null: none.
const PortFacts* FindPort(const RdmaFacts& device, uint8_t number) {
  const auto wanted = [&](const PortFacts& port) {
    return number == 0 ? port.state == "ACTIVE" : port.number == number;
  };
  const auto found = std::find_if(device.ports.begin(), device.ports.end(), wanted);
  if (found != device.ports.end()) return &*found;
  return number == 0 && !device.ports.empty() ? &device.ports.front() : nullptr;
}

absl::Status CheckName(const std::string& device) {
  if (IsSoft(device)) return verbs::soft::ParseUdpDevice(device).status();
  if (absl::StartsWith(device, "ibv:")) return verbs::ibv::ParseDeviceName(device).status();
  return absl::InvalidArgumentError(
      StrCat("unknown device '", device, "': use ibv:NAME, say ibv:mlx5_0, or soft:udp@IP"));
}

absl::Status CheckSettings(const DoctorSettings& settings) {
  const std::vector<std::string>& devices = settings.devices;
  for (const std::string& device : devices) {
    if (absl::Status status = CheckName(device); !status.ok()) return status;
  }
  const Opening& opening = settings.opening;
  const auto soft =
      std::find_if(devices.begin(), devices.end(), [](const std::string& device) { return IsSoft(device); });
  const struct {
    bool when;
    std::string text;
  } refusals[] = {
      {opening.by_tcp && soft != devices.end(),
       StrCat("--cm tcp: ", soft == devices.end() ? "" : *soft,
              " makes connections by itself; leave --cm out, or name an ibv: device")},
      {devices.size() > transport::kMaxRails,
       StrCat(devices.size(), " devices: tokd takes ", transport::kMaxRails, " at most; ask for some at a time")},
      {std::set<std::string>(devices.begin(), devices.end()).size() != devices.size(),
       "a device is named twice: name each once"},
      {devices.size() > 1 && (settings.listens || !settings.peer.is_unspecified()),
       "--peer and --listen try one pair of devices: name one here and one there, then the next pair"},
      {opening.by_tcp == opening.address.is_unspecified(),
       "--cm tcp and --address IP go together: the address of this host that is in tokd's --listen"},
      {opening.fabric.pkey_index != 0 && !opening.by_tcp,
       StrCat("--pkey-index ", opening.fabric.pkey_index,
              ": goes with --cm tcp; rdma_cm takes the partition of its IP address")},
      {opening.fabric.router_lid.has_value() && !opening.by_tcp,
       "--router-lid: goes with --cm tcp; rdma_cm finds the routers by itself"},
      {soft != devices.end() && (opening.fabric.service_level || opening.fabric.path_mtu),
       "--service-level and --path-mtu are for ibv: devices; leave them out for a software NIC"},
  };
  for (const auto& refusal : refusals) {
    if (refusal.when) return absl::InvalidArgumentError(refusal.text);
  }
  return absl::OkStatus();
}

DeviceCase CaseOf(const std::string& device, const MachineCase& machine) {
  DeviceCase known;
  known.name = device;
  known.in_initial_network = machine.machine.in_initial_network;
  known.in_container = !machine.machine.container.empty();
  known.by_tcp = machine.by_tcp;
  if (IsSoft(device)) return known;
  const auto name = *verbs::ibv::ParseDeviceName(device);
  known.gid_index = name.gid_index;
  const auto facts = std::find_if(machine.devices.begin(), machine.devices.end(),
                                  [&](const RdmaFacts& d) { return d.name == name.device; });
  if (facts == machine.devices.end()) {
    known.absent = StrCat("the kernel has no RDMA device ", name.device);
    const auto full_name = [](std::string* out, const RdmaFacts& d) { absl::StrAppend(out, "ibv:", d.name); };
    known.others = machine.devices.empty() ? "see 'devices' above"
                                           : StrCat("there are ", absl::StrJoin(machine.devices, ", ", full_name));
    return known;
  }
  known.driver = facts->driver;
  if (const PortFacts* port = FindPort(*facts, name.port)) {
    known.port = *port;
  } else {
    known.absent = StrCat(name.device, " has no port", name.port == 0 ? "" : StrCat(" ", name.port));
    known.others = "rdma link shows its ports";
  }
  return known;
}

DeviceReport ReportOn(const DeviceCase& known) {
  DeviceReport report;
  report.name = known.name;
  report.about = IsSoft(known.name) ? "software NIC" : known.driver;
  if (known.port.has_value()) {
    report.netdev_mtu = known.port->netdev.mtu;
    const std::string& netdev = known.port->netdev.name;
    if (!netdev.empty()) absl::StrAppend(&report.about, report.about.empty() ? "" : " ", "on ", netdev);
  }
  report.findings = CheckDevice(known);
  report.gids = GidTable(known);
  return report;
}

}  // namespace

absl::StatusOr<Report> Examine(const DoctorSettings& settings, const SystemFiles& files, const Prober& probe) {
  if (absl::Status status = CheckSettings(settings); !status.ok()) return status;
  MachineCase machine;
  machine.machine = ReadMachine(files);
  machine.devices = ReadRdmaDevices(files);
  machine.store = settings.store;
  machine.peers = settings.peers;
  machine.by_tcp = settings.opening.by_tcp;
  std::vector<std::string> devices = settings.devices;
  for (const std::string& device : devices) {
    IsSoft(device) ? void(++machine.soft) : machine.named.push_back(verbs::ibv::ParseDeviceName(device)->device);
  }
  if (devices.empty()) {
    for (const RdmaFacts& device : machine.devices) devices.push_back(StrCat("ibv:", device.name));
    devices.resize(std::min(devices.size(), kMaxDevices));
  }
  Report report;
  report.store = settings.store;
  report.by_tcp = settings.opening.by_tcp;
  report.fabric = settings.opening.FabricFlags();
  report.named = !settings.devices.empty();
  report.machine = CheckMachine(machine);
  for (const std::string& device : devices) {
    DeviceCase known = CaseOf(device, machine);
    if (known.absent.empty()) known.probe = probe({device, settings.opening});
    report.devices.push_back(ReportOn(known));
  }
  if (settings.peer.is_unspecified()) return report;
  report.peer = settings.peer.ToString();
  const DeviceReport* const working = WorkingDevice(report);
  if (working == nullptr) {
    report.with_peer.push_back(Named("connection", NotApplicable("not tried: no device works here")));
    return report;
  }
  DeviceCase known = CaseOf(working->name, machine);
  known.peer = report.peer;
  known.probe = probe({working->name, settings.opening, settings.peer});
  report.with_peer = CheckPeer(known);
  return report;
}

}  // namespace tokamak::cli::doctor
