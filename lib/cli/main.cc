// tok: the command line of Tokamak. `tok up` starts a cluster on this machine; the other commands
// talk to one daemon.
#include <fcntl.h>
#include <glog/logging.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <future>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "lib/base/text/nearest_name.h"
#include "lib/base/text/printable.h"
#include "lib/cli/as_absl.h"
#include "lib/cli/bench_between.h"
#include "lib/cli/cluster.h"
#include "lib/cli/command_line.h"
#include "lib/cli/commands.h"
#include "lib/cli/copies.h"
#include "lib/cli/demo.h"
#include "lib/cli/doctor/command.h"
#include "lib/cli/flags.h"
#include "lib/cli/interruption.h"
#include "lib/cli/output.h"
#include "lib/cli/tune/asked_holder.h"
#include "lib/cli/tune/client_holder.h"
#include "lib/cli/tune/command.h"
#include "lib/cli/undo.h"
#include "lib/cli/verbs/command.h"
#include "lib/cli/which_daemon.h"
#include "lib/daemon/flags/wrong_flags.h"
#include "lib/os/file_descriptor.h"
#include "nlohmann/json.hpp"
#include "tokamak/client.h"

namespace tokamak::cli {
namespace {

int Fail(const Flags& flags, const absl::Status& status, int code) {
  PrintError(flags.json, status);
  return code;
}

void PrintCluster(const Flags& flags, const Cluster& cluster) {
  if (flags.json) {
    nlohmann::json nodes = nlohmann::json::array();
    for (const ClusterProcess& node : cluster.nodes) {
      nodes.push_back({{"name", node.name}, {"pid", node.pid}, {"socket", node.socket}});
    }
    std::cout << ToText({{"state", flags.state}, {"nodes", nodes}}, 2) << "\n";
    return;
  }
  for (const ClusterProcess& node : cluster.nodes) {
    std::cout << node.name << "  pid " << node.pid << "  " << base::Printable(node.socket) << "\n";
  }
  const bool one = cluster.nodes.size() == 1;
  std::cout << cluster.nodes.size() << (one ? " node is up; stop it" : " nodes are up; stop them")
            << " with tok down\n";
}

int Up(Flags& flags) {
  flags.cluster.folder = flags.state;
  const os::FileDescriptor interrupted(eventfd(0, EFD_CLOEXEC));
  std::promise<absl::StatusOr<Cluster>> started;
  const Interruption interruption([&flags, &interrupted, result = started.get_future().share()] {
    const uint64_t one = 1;
    PCHECK(write(interrupted.get(), &one, sizeof one) == sizeof one);
    if (result.get().ok()) StopCluster(flags.state).IgnoreError();  // it was up just before
    PrintError(flags.json, absl::CancelledError("interrupted; what was started has been stopped"));
  });
  flags.cluster.interrupted = interrupted.get();
  const auto cluster = StartCluster(flags.cluster);
  started.set_value(cluster);
  if (absl::IsCancelled(cluster.status())) return 1;  // what cancelled it says so
  if (!cluster.ok()) return Fail(flags, cluster.status(), 2);
  PrintCluster(flags, *cluster);
  return 0;
}

int Down(const Flags& flags) {
  const auto stopped = StopCluster(flags.state);
  if (!stopped.ok()) return Fail(flags, stopped.status(), 2);
  if (flags.json) {
    std::cout << ToText({{"stopped", *stopped}}) << "\n";
  } else {
    std::cout << "stopped " << *stopped << (*stopped == 1 ? " process\n" : " processes\n");
  }
  return 0;
}

int RunTheDemo(Flags& flags) {
  flags.demo.folder = flags.state + "-demo";
  flags.demo.json = flags.json;
  const auto result = RunDemo(flags.demo);
  if (!result.ok()) return Fail(flags, result.status(), 1);
  std::cout << (flags.json ? DemoToJson(*result) + "\n" : FormatDemo(*result)) << std::flush;
  return result->mismatches == 0 ? 0 : 1;
}

Protocol ParseProtocol(const std::string& name) {
  if (name == "eager") return Protocol::kEager;
  if (name == "read") return Protocol::kRead;
  if (name == "write") return Protocol::kWrite;
  return Protocol::kAuto;
}

// Beside the one at `socket`. Those that do not answer are left out.
std::vector<Client> ConnectBeside(const Flags& flags, const std::string& socket) {
  ClientOptions options;
  options.name = "tok";
  std::vector<Client> clients;
  for (const std::string& other : FindSocketsBeside(flags, socket)) {
    auto client = Client::Connect(other, options);
    if (client.ok()) clients.push_back(*std::move(client));
  }
  return clients;
}

absl::Status BenchBetween(const Flags& flags, const std::string& socket, const CommandContext& context) {
  std::vector<Client> others = ConnectBeside(flags, socket);
  std::vector<std::string> nodes;
  for (const std::string& end : flags.bench.between) {
    nodes.push_back(end == socket ? context.client.node() : end);
    if (!IsSocket(nodes.back())) continue;
    ClientOptions options;
    options.name = "tok";
    auto client = AsAbsl(Client::Connect(end, options));
    if (!client.ok()) return client.status();
    nodes.back() = client->node();
    others.push_back(*std::move(client));
  }
  return BenchBetween(context, flags.bench, std::move(nodes), others);
}

absl::Status RunCommand(const Flags& flags, const std::string& command, const std::string& socket,
                        const CommandContext& context) {
  if (command == "put") return Put(context, flags.paths, flags.as);
  if (command == "get")
    return Get(context, {flags.name, flags.output, AsTimeout(flags.timeout), ParseProtocol(flags.protocol)});
  if (command == "ls") return List(context, flags.list);
  if (command == "wait") return Wait(context, flags.wait);
  if (command == "events") return FollowEvents(context, flags.events);
  if (command == "bench" && !flags.bench.between.empty()) return BenchBetween(flags, socket, context);
  if (command == "bench") return Bench(context, flags.bench);
  if (command == "top") return Top(context, flags.top);
  if (command == "stat") return Stat(context, flags.name);
  if (command == "rm" && !flags.prefix.empty()) return RemoveByPrefix(context, flags.prefix);
  if (command == "rm") return Remove(context, flags.names);
  if (IsCopiesCommand(command)) return RunCopiesCommand(context, command, flags.copies);
  return Nodes(context);
}

// `client` is of the node that pulls, or, with --serve, is pulled from.
absl::Status Tune(const Flags& flags, const tune::LinkSettings& settings, const std::string& peer_socket,
                  Client& client, Undo& undo) {
  if (flags.tune.serve) return tune::RunServe(client, undo, flags.json);
  if (!flags.tune.peer.empty()) {
    auto holder = tune::AskedHolder::Call(client, flags.tune.peer, settings.seed, undo);
    if (!holder.ok()) return holder.status();
    return tune::RunCommand(flags.tune, settings, client, *holder, undo, flags.json);
  }
  ClientOptions options;
  options.name = "tok tune";
  auto peer = AsAbsl(Client::Connect(peer_socket, options));
  if (!peer.ok()) return peer.status();
  tune::ClientHolder holder(*peer);
  return tune::RunCommand(flags.tune, settings, client, holder, undo, flags.json);
}

int TuneWith(const Flags& flags, Client& client, Undo& undo) {
  const auto settings = tune::SettingsOf(flags.tune);
  if (!settings.ok()) return Fail(flags, settings.status(), 2);
  const bool by_socket = !flags.tune.serve && flags.tune.peer.empty();
  const absl::StatusOr<std::string> peer_socket = by_socket ? FindPeerSocket(flags) : std::string();
  if (!peer_socket.ok()) return Fail(flags, peer_socket.status(), 2);
  const absl::Status status = Tune(flags, *settings, *peer_socket, client, undo);
  if (status.ok()) return 0;
  return absl::IsCancelled(status) ? 1 : Fail(flags, status, 1);
}

// The commands that need a daemon.
int Talk(const Flags& flags, const std::string& command) {
  if (command == "rm" && flags.names.empty() && flags.prefix.empty()) {
    return Fail(flags, absl::InvalidArgumentError("rm: give a name, or a --prefix that is not empty (see tok --help)"),
                2);
  }
  const auto socket = FindSocket(flags);
  if (!socket.ok()) return Fail(flags, socket.status(), 2);
  Undo undo;
  const bool goes_on = command == "events" || command == "top";  // until it is interrupted
  const Interruption interruption([&] {
    const absl::Status taken_back = undo.Interrupt();
    if (goes_on) return;
    if (isatty(STDERR_FILENO) == 1) std::cerr << "\r\033[K";  // where a progress bar may stand
    const std::string left =
        taken_back.ok() ? "" : absl::StrCat("; something is left half done: ", taken_back.message());
    PrintError(flags.json, absl::CancelledError(absl::StrCat("interrupted", left)));
  });
  ClientOptions options;
  options.name = "tok";
  auto client = AsAbsl(Client::Connect(*socket, options));
  if (!client.ok()) return Fail(flags, client.status(), 2);
  if (command == "tune") return TuneWith(flags, *client, undo);
  const absl::Status status = RunCommand(flags, command, *socket, {*client, undo, flags.json});
  if (status.ok()) return 0;
  return absl::IsCancelled(status) ? 1 : Fail(flags, status, 1);  // what cancelled it says so
}

// What CLI11 took, brought into shape. Later commands are given in other folders, so paths are
// whole.
absl::Status Complete(Flags& flags) {
  std::error_code error;
  flags.state = std::filesystem::absolute(flags.state, error).lexically_normal().string();
  if (error || flags.state.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--state: give the whole path of a folder", error ? ": " : "", error ? error.message() : ""));
  }
  while (flags.state.size() > 1 && flags.state.back() == '/') flags.state.pop_back();
  return absl::OkStatus();
}

// Descriptors 0 to 2 may have been closed by whoever started us: what we open must not be taken for
// standard output. Writing to it fails all the same.
void OccupyStandardDescriptors() {
  int opened = 0;
  while (opened >= 0 && opened <= STDERR_FILENO) opened = open("/dev/null", O_RDONLY);
  if (opened > STDERR_FILENO) close(opened);
}

// Also before the flags are understood.
bool WantsJson(int argc, char** argv) {
  return std::any_of(argv, argv + argc, [](const char* argument) { return std::strcmp(argument, "--json") == 0; });
}

int Help(const CLI::App& app, const Flags& flags) {
  if (flags.help_for.empty()) {
    std::cout << app.help();
    return 0;
  }
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands({})) {
    names.push_back(command->get_name());
    if (names.back() != flags.help_for) continue;
    std::cout << command->help(app.get_name());
    return 0;
  }
  return Fail(flags,
              absl::NotFoundError(absl::StrCat("there is no command ", flags.help_for,
                                               base::DidYouMean(flags.help_for, names), " (see tok --help)")),
              2);
}

int Run(int argc, char** argv) {
  Flags flags;
  CLI::App app("tok puts files into Tokamak's shared memory and gets them on other nodes.", "tok");
  DescribeCommandLine(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // for help or the version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    flags.json = WantsJson(argc, argv);
    return Fail(flags, absl::InvalidArgumentError(daemon::ExplainWrongFlags(app, error)), 2);
  }
  if (absl::Status status = Complete(flags); !status.ok()) return Fail(flags, status, 2);
  flags.cluster_chosen = app.count("--state") + app.count("--node") > 0;
  if (app.count("--socket") > 0 && app.count("--node") > 0) {
    return Fail(flags, absl::InvalidArgumentError("--socket and --node: give one of them"), 2);
  }
  const std::string command = app.get_subcommands().front()->get_name();
  if (command == "help") return Help(app, flags);
  if (command == "up") return Up(flags);
  if (command == "down") return Down(flags);
  if (command == "demo") return RunTheDemo(flags);
  if (command == "doctor") return doctor::RunCommand(flags.doctor, flags.json);
  if (command == "verbs") return verbs::RunCommand(flags.verbs, flags.json);
  return Talk(flags, command);
}

int Main(int argc, char** argv) {
  OccupyStandardDescriptors();
  int code = 1;
  try {
    code = Run(argc, argv);
  } catch (const std::exception& error) {  // of a library: a mistake of ours, but a user gets a line nevertheless
    PrintError(WantsJson(argc, argv), absl::InternalError(absl::StrCat("unexpected error: ", error.what())));
  }
  return FinishOutput(WantsJson(argc, argv), code);
}

}  // namespace
}  // namespace tokamak::cli

int main(int argc, char** argv) { return tokamak::cli::Main(argc, argv); }
