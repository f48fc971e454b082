#include "lib/cli/doctor/command.h"

#include <iostream>

#include "lib/base/units.h"
#include "lib/cli/common/command.h"
#include "lib/cli/common/output.h"

namespace tokamak::cli::doctor {

namespace {

int Fail(bool json, const absl::Status& status, int code) {
  PrintError(json, status);
  return code;
}

// Parses the flags that are texts.
absl::StatusOr<DoctorSettings> SettingsOf(const CommandFlags& flags) {
  DoctorSettings settings = flags.settings;
  settings.opening.by_tcp = flags.cm == "tcp";
  for (const auto& [text, address] :
       {std::pair(flags.address, &settings.opening.address), std::pair(flags.peer, &settings.peer)}) {
    if (text.empty()) continue;
    const auto parsed = verbs::Address::Parse(text);
    if (!parsed.ok()) return parsed.status();
    *address = *parsed;
  }
  if (!flags.peer.empty()) {
    if (settings.peer.port == 0) settings.peer.port = flags.port;
    if (settings.peer.is_unspecified() || settings.peer.port == 0) {
      return absl::InvalidArgumentError("--peer: give the address and the port that tok doctor --listen prints");
    }
  }
  const auto store = base::ParseSize(flags.memory);
  if (!store.ok()) return store.status();
  settings.store = *store;
  return settings;
}

}  // namespace

void AddCommand(CLI::App& app, CommandFlags& flags) {
  daemon::FabricSettings& fabric = flags.settings.opening.fabric;
  CLI::App* const doctor =
      NewCommand(app, "doctor", "say whether RDMA works here, and what to do if not", "tok doctor --memory 16GiB");
  doctor
      ->add_option("--device", flags.settings.devices,
                   "as for tokd: ibv:NAME[:PORT][@GID_INDEX] or soft:udp@IP, or several (A,B); all RDMA devices unless "
                   "given")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  doctor->add_option("--memory", flags.memory, "store that tokd will have, held against the limit on locked memory")
      ->type_name("SIZE")
      ->capture_default_str();
  doctor
      ->add_option("--peers", flags.settings.peers,
                   "nodes that tokd will be connected with, held against the limits on locked memory and descriptors")
      ->check(CLI::Range(0, 65536));
  auto* peer = doctor->add_option("--peer", flags.peer, "where tok doctor --listen listens: measure to there as well")
                   ->type_name("IP[:PORT]");
  doctor
      ->add_flag("--listen", flags.settings.listens,
                 "wait for doctors of other hosts, once the device here is found healthy")
      ->excludes(peer);
  doctor->add_option("--port", flags.port, "port of --listen and --peer, as that of tokd --listen")
      ->capture_default_str();
  doctor
      ->add_option("--cm", flags.cm, "as for tokd: how connections of ibv: are made: rdma (rdma_cm) or tcp (over TCP)")
      ->check(CLI::IsMember({"rdma", "tcp"}))
      ->capture_default_str();
  doctor->add_option("--address", flags.address, "with --cm tcp: this host's IP, as in tokd --listen");
  doctor
      ->add_option("--pkey-index", fabric.pkey_index,
                   "as for tokd, with --cm tcp, on InfiniBand: the partition, by its place in the port's table")
      ->check(CLI::Range(0, UINT16_MAX))
      ->capture_default_str();
  doctor->add_option("--path-mtu", fabric.path_mtu, "as for tokd: the largest packets that a path carries")
      ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
  doctor->add_option("--router-lid", fabric.router_lid, "as for tokd, with --cm tcp, on InfiniBand")
      ->check(CLI::Range(1, 0xbfff));
  doctor->add_option("--service-level", fabric.service_level, "as for tokd: of InfiniBand, or the priority of RoCE")
      ->check(CLI::Range(0, 15));
  doctor->add_option("--traffic-class", fabric.traffic_class, "as for tokd: DSCP times 4, and ECN")
      ->check(CLI::Range(0, UINT8_MAX));
  doctor->add_flag("--probe", flags.probe)->group("");
}

int RunCommand(const CommandFlags& flags, bool json) {
  const auto settings = SettingsOf(flags);
  if (!settings.ok()) return Fail(json, settings.status(), 2);
  if (flags.probe) {  // the flags come from our own ProbeInChild
    if (settings->devices.size() != 1) return Fail(false, absl::InvalidArgumentError("--probe: one device"), 2);
    RunProbe({settings->devices.front(), settings->opening, settings->peer}, {},
             [](const std::string& line) { std::cout << line << std::endl; });
    return 0;
  }
  const SystemFiles files;
  const auto report = Examine(*settings, files, [](const ProbeRequest& request) { return ProbeInChild(request); });
  if (!report.ok()) return Fail(json, report.status(), 2);
  std::cout << (json ? ReportToJson(*report) : FormatReport(*report)) << std::flush;
  if (!Works(*report)) return 1;
  if (!settings->listens) return 0;
  const DeviceReport& device = *WorkingDevice(*report);
  const absl::Status listened = Listen(device.name, settings->opening, flags.port, device.netdev_mtu);
  return listened.ok() ? 0 : Fail(json, listened, 1);
}

}  // namespace tokamak::cli::doctor
