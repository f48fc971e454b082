// SPDX-License-Identifier: GPL-2.0-only
//
// A simulated fabric in real time, with hosts outside of the simulation: docs/simulation.md,
// "Emulation".
//
//   bazel run -c opt //sim/ns3:emulate -- TOPOLOGY --attach host0=eth0@ns0 --attach host1=eth0@ns1
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/check.h"
#include "lib/base/units.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/loop_thread.h"
#include "sim/emulation/emulation.h"
#include "sim/fabric/topology/topology_file.h"
#include "sim/ns3/ns3_real_time.h"

namespace tokamak::sim {
namespace {

enum ExitCode : int { kDone = 0, kBroken = 1, kWrongUse = 2 };

struct CommandLine {
  std::string topology;
  std::vector<std::string> attach;
  uint64_t seed = 1;
  std::string queue = "1MiB";
  std::string lag_bound = "10ms";
  std::string summary;
};

int Fail(ExitCode code, const absl::Status& status) {
  std::cerr << "emulate: " << status.message() << std::endl;
  return code;
}

// For this thread and those that it starts.
os::FileDescriptor CatchEnd() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  PCHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  os::FileDescriptor caught(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  PCHECK(caught.valid());
  return caught;
}

absl::StatusOr<EmulationOptions> ReadOptions(const CommandLine& command) {
  EmulationOptions options;
  options.seed = command.seed;
  const auto queue = base::ParseSize(command.queue);
  if (!queue.ok()) return queue.status();
  if (*queue < Attachment::kLeastQueue) return absl::InvalidArgumentError("--queue: 16KiB at least, for two frames");
  options.queue = *queue;
  const auto bound = base::ParseDuration(command.lag_bound);
  if (!bound.ok()) return bound.status();
  options.lag_bound = *bound;
  return options;
}

int Run(const CommandLine& command) {
  const auto topology = ReadTopologyFile(command.topology);
  if (!topology.ok()) return Fail(kWrongUse, topology.status());
  const auto options = ReadOptions(command);
  if (!options.ok()) return Fail(kWrongUse, options.status());
  std::vector<AttachPoint> points;
  for (const std::string& text : command.attach) {
    auto point = AttachPoint::Parse(text);
    if (!point.ok()) return Fail(kWrongUse, point.status());
    points.push_back(*std::move(point));
  }

  const os::FileDescriptor end = CatchEnd();
  Ns3RealTime time;
  auto emulation = Emulation::Build(time, *topology, points, *options, std::cout);
  if (!emulation.ok()) return Fail(kWrongUse, emulation.status());
  os::LoopThread signals({"emulate-signals"});
  os::FdWatch watch;
  signals.CallOn([&] {
    watch = signals.loop().Watch(end.get(), EPOLLIN, [&](uint32_t) {
      watch.Reset();
      time.Stop();
    });
  });
  (*emulation)->Start();
  std::cout << "ready" << std::endl;
  time.Run();
  (*emulation)->Stop();
  signals.CallOn([&] { watch.Reset(); });
  signals.Stop();

  (*emulation)->PrintSummary();
  if (command.summary.empty()) return kDone;
  std::ofstream file(command.summary);
  file << (*emulation)->Summary().dump(2) << "\n";
  file.close();
  if (!file) return Fail(kBroken, absl::UnavailableError("cannot write " + command.summary));
  return kDone;
}

int EmulateProgram(int argc, char** argv) {
  // Under `bazel run` paths are relative to the calling shell.
  if (const char* folder = std::getenv("BUILD_WORKING_DIRECTORY")) std::filesystem::current_path(folder);
  CommandLine command;
  CLI::App app(
      "A simulated RoCE fabric in real time, with hosts outside of the simulation: docs/simulation.md, \"Emulation\".\n"
      "Prints \"ready\", then a line each second, and at the end (SIGINT, SIGTERM) what was counted.\n"
      "Exit codes: 0 done, 1 results could not be written, 2 wrong use; the message says what would be right.",
      "emulate");
  app.add_option("topology", command.topology, "a JSON file: docs/simulation.md, \"Topology files\"")->required();
  app.add_option("--attach", command.attach,
                 "HOST=INTERFACE[@NETWORK]: this host of the topology is outside, at this interface of this machine; "
                 "a tap is made where there is none. NETWORK: a name (ip netns), a process's id, or a path. "
                 "HOST=fd:NUMBER: at an inherited socket whose datagrams are frames. May be repeated")
      ->take_all()
      ->allow_extra_args(false)
      ->required();
  app.add_option("--seed", command.seed, "of ways, marks and losses")->capture_default_str();
  app.add_option("--queue", command.queue,
                 "what may wait for a host's link, in bytes of each priority; beyond that the host waits")
      ->capture_default_str();
  app.add_option("--lag", command.lag_bound, "says so when it was later than this")->capture_default_str();
  app.add_option("--summary", command.summary, "a JSON file for what was counted");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongUse;
  }
  return Run(command);
}

}  // namespace
}  // namespace tokamak::sim

int main(int argc, char** argv) { return tokamak::sim::EmulateProgram(argc, argv); }
