#include "lib/cli/doctor/doctor.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/cli/doctor/device_checks.h"
#include "lib/cli/doctor/machine_checks.h"
#include "lib/cli/doctor/machine_facts.h"
#include "lib/cli/doctor/rdma_facts.h"
#include "lib/transport/limits.h"
#include "lib/verbs/ibv/translation/device_name.h"
#include "lib/verbs/soft/udp/udp_fabric.h"

namespace tokamak::cli::doctor {

namespace {

using verbs::ibv::DeviceName;

bool IsIbv(const std::string& name) { return absl::StartsWith(name, "ibv:"); }

const RdmaFacts* FindDevice(const std::vector<RdmaFacts>& devices, const std::string& name) {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const RdmaFacts& d) { return d.name == name; });
  return found == devices.end() ? nullptr : &*found;
}

// The port that is named, or else the first that is active, or at least the first.
const PortFacts* FindPort(const RdmaFacts& device, uint8_t number) {
  const auto wanted = [&](const PortFacts& port) {
    return number == 0 ? port.state == "ACTIVE" : port.number == number;
  };
  const auto found = std::find_if(device.ports.begin(), device.ports.end(), wanted);
  if (found != device.ports.end()) return &*found;
  return number == 0 && !device.ports.empty() ? &device.ports.front() : nullptr;
}

absl::Status CheckName(const std::string& device) {
  if (verbs::soft::IsUdpDevice(device)) return verbs::soft::ParseUdpDevice(device).status();
  if (IsIbv(device)) return verbs::ibv::ParseDeviceName(device).status();
  return absl::InvalidArgumentError(
      absl::StrCat("unknown device '", device, "': use ibv:NAME, say ibv:mlx5_0, or soft:udp@IP"));
}

absl::Status CheckSettings(const DoctorSettings& settings) {
  const std::vector<std::string>& devices = settings.devices;
  for (const std::string& device : devices) {
    if (absl::Status status = CheckName(device); !status.ok()) return status;
    if (settings.by_tcp && !IsIbv(device)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--cm tcp: ", device, " makes connections by itself; leave --cm out, or name an ibv: device"));
    }
  }
  if (devices.size() > transport::kMaxRails) {
    return absl::InvalidArgumentError(absl::StrCat(devices.size(), " devices: tokd takes ", transport::kMaxRails,
                                                   " at most; ask for some at a time"));
  }
  if (std::set<std::string>(devices.begin(), devices.end()).size() != devices.size()) {
    return absl::InvalidArgumentError("a device is named twice: name each once");
  }
  if (devices.size() > 1 && (settings.listens || !settings.peer.empty())) {
    return absl::InvalidArgumentError(
        "--peer and --listen try one pair of devices: name one here and one there, then the next pair");
  }
  if (settings.by_tcp == settings.address.is_unspecified()) {
    return absl::InvalidArgumentError(
        "--cm tcp and --address IP go together: the address of this host that is in tokd's --listen");
  }
  if (settings.fabric.pkey_index != 0 && !settings.by_tcp) {
    return absl::InvalidArgumentError(
        absl::StrCat("--pkey-index ", settings.fabric.pkey_index,
                     ": goes with --cm tcp; rdma_cm takes the partition of its IP address"));
  }
  return absl::OkStatus();
}

class Examination final {
 public:
  Examination(const DoctorSettings& settings, const SystemFiles& files, Prober& prober)
      : settings_(settings), prober_(prober), machine_(ReadMachine(files)), devices_(ReadRdmaDevices(files)) {
    report_.store = settings.store;
    report_.by_tcp = settings.by_tcp;
    report_.fabric = FlagsOf(settings.fabric);
    report_.named = !settings.devices.empty();
  }

  absl::StatusOr<Report> Run() {
    if (absl::Status status = CheckSettings(settings_); !status.ok()) return status;
    if (settings_.devices.empty()) {
      ExamineMachine();
      for (const RdmaFacts& device : devices_) {
        if (report_.devices.size() == kMaxDevices) break;
        ExamineIbv(absl::StrCat("ibv:", device.name), {device.name, 0, std::nullopt});
      }
    } else {
      const auto soft = std::count_if(settings_.devices.begin(), settings_.devices.end(), verbs::soft::IsUdpDevice);
      if (static_cast<size_t>(soft) < settings_.devices.size()) {
        ExamineMachine();
      } else {
        report_.machine.push_back(CheckHugePages(machine_, settings_.store));
        if (settings_.peers > 0) report_.machine.push_back(CheckDescriptors(machine_, settings_.peers, false));
      }
      if (soft > 0) {
        report_.machine.push_back(CheckUdpBuffers(machine_, verbs::soft::UdpSocketOptions().receive_buffer));
      }
      for (const std::string& device : settings_.devices) {
        IsIbv(device) ? ExamineIbv(device, *verbs::ibv::ParseDeviceName(device)) : ExamineSoft(device);
      }
    }
    AskPeer();
    return std::move(report_);
  }

 private:
  void ExamineMachine() {
    std::vector<Finding>& findings = report_.machine;
    findings.push_back(CheckModules(machine_, settings_.by_tcp));
    findings.push_back(CheckDevices(machine_, devices_));
    std::vector<std::string> named;
    for (const std::string& device : settings_.devices) {
      if (IsIbv(device)) named.push_back(verbs::ibv::ParseDeviceName(device)->device);
    }
    findings.push_back(CheckPermission(machine_, devices_, settings_.by_tcp, named));
    const size_t devices = std::max<size_t>(named.size(), 1);
    findings.push_back(CheckMemlock(machine_, settings_.store, devices, settings_.peers));
    if (settings_.peers > 0) {
      findings.push_back(CheckDescriptors(machine_, settings_.peers, settings_.by_tcp, devices));
    }
    findings.push_back(CheckHugePages(machine_, settings_.store));
    findings.push_back(CheckNetwork(machine_, devices_));
    if (settings_.devices.empty() && devices_.size() > kMaxDevices) {
      findings.push_back(Warning("many devices", absl::StrCat("only the first ", kMaxDevices, " are examined"),
                                 "name the others with --device"));
    }
  }

  void ExamineSoft(const std::string& name) {
    DeviceReport device;
    device.name = name;
    device.about = "software NIC";
    const DeviceSituation situation = Situation(device.name, "");
    const ProbeOutcome self = prober_.Probe(Request(device.name, ""));
    device.findings.push_back(CheckUse(situation, self));
    device.findings.push_back(self.active_mtu == 0 ? NotApplicable("mtu", "not known: it could not be opened")
                                                   : Ok("mtu", absl::StrCat("path MTU ", self.active_mtu)));
    device.findings.push_back(CheckConnection(situation, self));
    device.findings.push_back(CheckPingPong(situation, self));
    report_.devices.push_back(std::move(device));
  }

  void ExamineIbv(const std::string& text, const DeviceName& name) {
    DeviceReport device;
    device.name = text;
    const RdmaFacts* facts = FindDevice(devices_, name.device);
    if (facts == nullptr) {
      device.findings.push_back(Failed("link", absl::StrCat("the kernel has no RDMA device ", name.device), Others()));
      report_.devices.push_back(std::move(device));
      return;
    }
    const DeviceSituation situation = Situation(text, facts->driver);
    device.about = facts->driver;
    const PortFacts* port = FindPort(*facts, name.port);
    if (port == nullptr) {
      const std::string seen =
          absl::StrCat(name.device, " has no port", name.port == 0 ? "" : absl::StrCat(" ", name.port));
      device.findings.push_back(Failed("link", seen, "rdma link shows its ports"));
      report_.devices.push_back(std::move(device));
      return;
    }
    if (!port->netdev.name.empty()) {
      absl::StrAppend(&device.about, device.about.empty() ? "" : " ", "on ", port->netdev.name);
    }
    device.findings.push_back(CheckLink(*port));
    device.findings.push_back(CheckGid(*port, name.gid_index, settings_.by_tcp, device.gids));
    const ProbeOutcome self = prober_.Probe(Request(text, ""));
    device.findings.push_back(CheckMtu(*port, self));
    device.findings.push_back(CheckUse(situation, self));
    device.findings.push_back(CheckConnection(situation, self));
    device.findings.push_back(CheckPingPong(situation, self));
    report_.devices.push_back(std::move(device));
  }

  // The first healthy device speaks to the peer.
  void AskPeer() {
    if (settings_.peer.empty()) return;
    report_.peer = settings_.peer;
    const DeviceReport* device = WorkingDevice(report_);
    if (device == nullptr) {
      report_.with_peer.push_back(NotApplicable("peer", "not asked: no device works here"));
      return;
    }
    uint32_t netdev_mtu = 0;
    std::string driver;
    if (IsIbv(device->name)) {
      const auto name = verbs::ibv::ParseDeviceName(device->name);
      const RdmaFacts* facts = FindDevice(devices_, name->device);  // there, as the device works
      netdev_mtu = FindPort(*facts, name->port)->netdev.mtu;
      driver = facts->driver;
    }
    const DeviceSituation situation = Situation(device->name, driver);
    const ProbeOutcome peer = prober_.Probe(Request(device->name, settings_.peer));
    report_.with_peer = {CheckPeer(settings_.peer, peer), CheckPeerMtu(netdev_mtu, peer),
                         CheckPeerConnection(situation, peer), CheckPeerPingPong(situation, peer)};
  }

  DeviceSituation Situation(const std::string& name, const std::string& driver) const {
    return {name, driver, machine_.in_initial_network, !machine_.container.empty(), settings_.by_tcp};
  }

  ProbeRequest Request(const std::string& device, const std::string& peer) const {
    return {device, peer, settings_.peer_port, settings_.by_tcp, settings_.address, settings_.fabric};
  }

  std::string Others() const {
    std::vector<std::string> names;
    for (const RdmaFacts& device : devices_) names.push_back("ibv:" + device.name);
    if (names.empty()) return "see 'devices' above";
    return absl::StrCat("there are ", absl::StrJoin(names, ", "));
  }

  const DoctorSettings& settings_;
  Prober& prober_;
  const MachineFacts machine_;
  const std::vector<RdmaFacts> devices_;
  Report report_;
};

}  // namespace

absl::StatusOr<Report> Examine(const DoctorSettings& settings, const SystemFiles& files, Prober& prober) {
  return Examination(settings, files, prober).Run();
}

uint32_t NetdevMtuOf(const std::string& device, const SystemFiles& files) {
  if (!IsIbv(device)) return 0;
  const auto name = verbs::ibv::ParseDeviceName(device);
  if (!name.ok()) return 0;
  const std::vector<RdmaFacts> devices = ReadRdmaDevices(files);
  const RdmaFacts* facts = FindDevice(devices, name->device);
  const PortFacts* port = facts == nullptr ? nullptr : FindPort(*facts, name->port);
  return port == nullptr ? 0 : port->netdev.mtu;
}

}  // namespace tokamak::cli::doctor
