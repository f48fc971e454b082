// tokd: the daemon of one node. Its parts: daemon.h; its flags: options.h.
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/daemon/daemon.h"
#include "lib/daemon/flags/options.h"
#include "lib/daemon/flags/reload.h"
#include "lib/daemon/watch/json_log.h"
#include "lib/daemon/watch/text_log.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/process/descriptor_limit.h"
#include "lib/os/process/service_manager.h"

namespace tokamak::daemon {
namespace {

// Returns SIGTERM, SIGINT and SIGHUP as a descriptor; blocks them before any thread starts.
os::FileDescriptor TakeSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file beyond ulimit -f is its writer's error
  return os::FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

// True if a signal to end is pending: the start does not read the descriptor.
bool StopAsked() {
  sigset_t waiting;
  sigpending(&waiting);
  return sigismember(&waiting, SIGTERM) == 1 || sigismember(&waiting, SIGINT) == 1;
}

enum class Phase { kStarting, kReady, kDraining };

int Main(int argc, char** argv) {
  const ParsedFlags flags = ParseFlags(argc, argv);
  if (!flags.run) return flags.exit_code;
  base::SetLogLevel(flags.options.log.level);
  std::optional<JsonLog> json_log;
  if (flags.options.log.json) json_log.emplace(flags.options.name);

  os::RaiseDescriptorLimit();
  const os::FileDescriptor signals = TakeSignals();
  os::EpollLoop loop(flags.options.detection);
  absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(loop, flags.options, StopAsked);
  if (absl::IsCancelled(daemon.status())) return 0;
  if (!daemon.ok()) {
    std::cerr << "tokd: " << daemon.status().message() << std::endl;
    return 2;
  }
  os::ServiceManager manager;
  manager.KeepAlive(loop);

  Phase phase = Phase::kStarting;
  absl::Status refused;  // by the directory: ends the start
  std::string ready;
  (*daemon)->OnStanding([&](const absl::Status& standing) {
    if (phase == Phase::kDraining || (phase == Phase::kReady && !standing.ok())) return;
    if (absl::IsAlreadyExists(standing)) {
      refused = standing;
      return loop.Stop();
    }
    ready = absl::StrCat(flags.options.device, ", ", base::FormatSize(flags.options.memory), ", socket ",
                         flags.options.socket);
    if (!standing.ok()) absl::StrAppend(&ready, "; not in a cluster yet: ", standing.message());
    manager.Ready(ready);
    if (std::exchange(phase, Phase::kReady) == Phase::kReady) return;
    const std::string told = absl::StrCat("tokd ", flags.options.name, " ready: ", ready);
    std::cout << (json_log.has_value() ? json_log->Line("info", absl::StrCat("main.cc:", __LINE__), told) : told)
              << std::endl;
  });

  // SIGHUP reloads. The first other signal drains; a second ends at once.
  Reload reload(argc, argv, flags);
  const os::FdWatch watch = loop.Watch(signals.get(), EPOLLIN, [&](uint32_t) {
    signalfd_siginfo info{};
    if (read(signals.get(), &info, sizeof info) != sizeof info) return;
    if (info.ssi_signo == SIGHUP) {
      if (phase == Phase::kReady) manager.Reloading();
      const std::optional<DaemonOptions> options = reload.Read();
      if (phase == Phase::kReady) manager.Ready(ready);
      if (!options.has_value()) return;
      (*daemon)->Reload(*options);
      base::SetLogLevel(options->log.level);
      return;
    }
    if (phase == Phase::kDraining) return loop.Stop();
    phase = Phase::kDraining;
    manager.Stopping("draining");
    LOG(INFO) << "draining; a second signal ends at once";
    (*daemon)->Drain([&] { loop.Stop(); });
  });
  loop.Run();
  daemon->reset();
  if (refused.ok()) return 0;
  std::cerr << "tokd: " << refused.message() << std::endl;
  return 2;
}

}  // namespace
}  // namespace tokamak::daemon

int main(int argc, char** argv) {
  const tokamak::daemon::TextLog text_log(argv[0]);
  try {
    return tokamak::daemon::Main(argc, argv);
  } catch (const std::exception& error) {  // of a library
    std::cerr << "tokd: unexpected error: " << error.what() << std::endl;
    return 1;
  }
}
