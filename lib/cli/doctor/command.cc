#include "lib/cli/doctor/command.h"

#include <iostream>

#include "lib/base/units.h"
#include "lib/cli/doctor/child_prober.h"
#include "lib/cli/doctor/doctor.h"
#include "lib/cli/doctor/listen.h"

namespace tokamak::cli::doctor {

namespace {

int Fail(const absl::Status& status, int code) {
  std::cerr << "tok: " << status.message() << std::endl;
  return code;
}

int Probe(const CommandFlags& flags) {
  RunProbe({flags.device, flags.peer, flags.port}, {}, [](const std::string& line) { std::cout << line << std::endl; });
  return 0;
}

}  // namespace

void AddCommand(CLI::App& app, CommandFlags& flags) {
  CLI::App* doctor = app.add_subcommand("doctor", "say whether RDMA works here, and what to do if not");
  doctor->add_option("--device", flags.device,
                     "as for tokd: ibv:NAME[:PORT][@GID_INDEX] or soft:udp@IP; all RDMA devices unless given");
  doctor->add_option("--memory", flags.memory, "store that tokd will have, held against the limit on locked memory")
      ->capture_default_str();
  auto* peer =
      doctor->add_option("--peer", flags.peer, "a host where tok doctor --listen runs: measure to there as well");
  doctor->add_flag("--listen", flags.listen, "wait for doctors of other hosts, once the device here is found healthy")
      ->excludes(peer);
  doctor->add_option("--port", flags.port, "TCP port of --listen and --peer")->capture_default_str();
  doctor->add_flag("--probe", flags.probe)->group("");
}

int RunCommand(const CommandFlags& flags, bool json) {
  if (flags.probe) return Probe(flags);
  const auto store = base::ParseSize(flags.memory);
  if (!store.ok()) return Fail(store.status(), 2);
  const SystemFiles files;
  ChildProber prober;
  const auto report = Examine({flags.device, *store, flags.peer, flags.port}, files, prober);
  if (!report.ok()) return Fail(report.status(), 2);
  std::cout << (json ? ReportToJson(*report) : FormatReport(*report)) << std::flush;
  if (!Works(*report)) return 1;
  if (!flags.listen) return 0;
  const std::string device = WorkingDevice(*report)->name;
  const absl::Status listened = Listen({device, flags.port, NetdevMtuOf(device, files)});
  return listened.ok() ? 0 : Fail(listened, 1);
}

}  // namespace tokamak::cli::doctor
