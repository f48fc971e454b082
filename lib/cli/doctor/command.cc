#include "lib/cli/doctor/command.h"

#include <iostream>

#include "lib/base/units.h"
#include "lib/cli/common/command.h"
#include "lib/cli/common/output.h"
#include "lib/cli/doctor/child_prober.h"
#include "lib/cli/doctor/doctor.h"
#include "lib/cli/doctor/listen.h"

namespace tokamak::cli::doctor {

namespace {

int Fail(bool json, const absl::Status& status, int code) {
  PrintError(json, status);
  return code;
}

// Runs the probe of a child process, whose flags come from our own ChildProber.
int Probe(const CommandFlags& flags, const DoctorSettings& settings) {
  if (flags.devices.size() != 1) return Fail(false, absl::InvalidArgumentError("--probe: one device"), 2);
  RunProbe({flags.devices.front(), flags.peer, flags.port, settings.by_tcp, settings.address, settings.fabric}, {},
           [](const std::string& line) { std::cout << line << std::endl; });
  return 0;
}

}  // namespace

void AddCommand(CLI::App& app, CommandFlags& flags) {
  CLI::App* const doctor =
      NewCommand(app, "doctor", "say whether RDMA works here, and what to do if not", "tok doctor --memory 16GiB");
  doctor
      ->add_option("--device", flags.devices,
                   "as for tokd: ibv:NAME[:PORT][@GID_INDEX] or soft:udp@IP, or several (A,B); all RDMA devices unless "
                   "given")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  doctor->add_option("--memory", flags.memory, "store that tokd will have, held against the limit on locked memory")
      ->type_name("SIZE")
      ->capture_default_str();
  doctor
      ->add_option("--peers", flags.peers,
                   "nodes that tokd will be connected with, held against the limits on locked memory and descriptors")
      ->check(CLI::Range(0, 65536));
  auto* peer =
      doctor->add_option("--peer", flags.peer, "a host where tok doctor --listen runs: measure to there as well");
  doctor->add_flag("--listen", flags.listen, "wait for doctors of other hosts, once the device here is found healthy")
      ->excludes(peer);
  doctor->add_option("--port", flags.port, "TCP port of --listen and --peer")->capture_default_str();
  doctor
      ->add_option("--cm", flags.cm, "as for tokd: how connections of ibv: are made: rdma (rdma_cm) or tcp (over TCP)")
      ->check(CLI::IsMember({"rdma", "tcp"}))
      ->capture_default_str();
  doctor->add_option("--address", flags.address, "with --cm tcp: this host's IP, as in tokd --listen");
  doctor
      ->add_option("--pkey-index", flags.fabric.pkey_index,
                   "as for tokd, with --cm tcp, on InfiniBand: the partition, by its place in the port's table")
      ->check(CLI::Range(0, UINT16_MAX))
      ->capture_default_str();
  doctor->add_option("--path-mtu", flags.fabric.path_mtu, "as for tokd: the largest packets that a path carries")
      ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
  doctor->add_option("--router-lid", flags.fabric.router_lid, "as for tokd, with --cm tcp, on InfiniBand")
      ->check(CLI::Range(1, 0xbfff));
  doctor
      ->add_option("--service-level", flags.fabric.service_level, "as for tokd: of InfiniBand, or the priority of RoCE")
      ->check(CLI::Range(0, 15));
  doctor->add_option("--traffic-class", flags.fabric.traffic_class, "as for tokd: DSCP times 4, and ECN")
      ->check(CLI::Range(0, UINT8_MAX));
  doctor->add_flag("--probe", flags.probe)->group("");
}

int RunCommand(const CommandFlags& flags, bool json) {
  DoctorSettings settings;
  settings.devices = flags.devices;
  settings.peers = flags.peers;
  settings.peer = flags.peer;
  settings.peer_port = flags.port;
  settings.listens = flags.listen;
  settings.by_tcp = flags.cm == "tcp";
  if (!flags.address.empty()) {
    const auto address = verbs::Address::Parse(flags.address);
    if (!address.ok()) return Fail(json, address.status(), 2);
    settings.address = *address;
  }
  settings.fabric = flags.fabric;
  if (flags.probe) return Probe(flags, settings);
  const auto store = base::ParseSize(flags.memory);
  if (!store.ok()) return Fail(json, store.status(), 2);
  settings.store = *store;
  const SystemFiles files;
  ChildProber prober;
  const auto report = Examine(settings, files, prober);
  if (!report.ok()) return Fail(json, report.status(), 2);
  std::cout << (json ? ReportToJson(*report) : FormatReport(*report)) << std::flush;
  if (!Works(*report)) return 1;
  if (!flags.listen) return 0;
  const std::string device = WorkingDevice(*report)->name;
  const absl::Status listened =
      Listen({device, flags.port, NetdevMtuOf(device, files), settings.by_tcp, settings.address, settings.fabric});
  return listened.ok() ? 0 : Fail(json, listened, 1);
}

}  // namespace tokamak::cli::doctor
