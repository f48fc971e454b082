// tok: the command line of Tokamak. `tok up` starts a cluster on this machine; the other commands
// talk to one daemon.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "lib/base/units.h"
#include "lib/base/version.h"
#include "lib/cli/as_absl.h"
#include "lib/cli/cluster.h"
#include "lib/cli/commands.h"
#include "lib/cli/copies.h"
#include "lib/cli/demo.h"
#include "lib/cli/doctor/command.h"
#include "lib/cli/interruption.h"
#include "lib/cli/output.h"
#include "lib/cli/tune/asked_holder.h"
#include "lib/cli/tune/client_holder.h"
#include "lib/cli/tune/command.h"
#include "lib/cli/undo.h"
#include "lib/cli/verbs/command.h"
#include "nlohmann/json.hpp"
#include "tokamak/client.h"

namespace tokamak::cli {
namespace {

constexpr char kFooter[] =
    "Which daemon: --socket PATH; or node --node of the cluster in --state, if one of the two is given; or\n"
    "$TOKAMAK_SOCKET; or node 1 of the cluster that tok up started.\n"
    "Example:\n"
    "  tok up --nodes 3\n"
    "  tok put /usr/share/dict --as dict\n"
    "  tok --node 2 get dict -o /tmp/dict --protocol read\n"
    "  tok down\n"
    "Exit codes: 0 done, 1 it failed, 2 wrong flags or no daemon; of doctor: 0 RDMA works here, 1 it does not;\n"
    "of verbs: the command's.\n"
    "Errors are one line on standard error; with --json that is {\"error\": CODE, \"message\": TEXT}.\n"
    "Control characters, and bytes that are not UTF-8, are printed as \\xHH; JSON has the latter as \\xHH, too.";

struct Flags {
  std::string socket;
  bool cluster_chosen = false;  // by --node or --state
  std::string state = DefaultFolder();
  uint32_t node = 1;
  bool json = false;
  ClusterSettings cluster;
  DemoSettings demo;
  doctor::CommandFlags doctor;
  tune::CommandFlags tune;
  verbs::CommandFlags verbs;
  std::string demo_memory = "1GiB";
  std::string demo_least = "200MiB";
  std::vector<std::string> paths;
  std::string as;
  std::string name;
  std::string output;
  std::string timeout = "30s";
  std::string protocol = "auto";
  std::vector<std::string> names;
  std::string prefix;
  CopiesFlags copies;
};

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
    std::cout << node.name << "  pid " << node.pid << "  " << Printable(node.socket) << "\n";
  }
  std::cout << cluster.nodes.size() << " nodes are up; stop them with tok down\n";
}

int Up(Flags& flags) {
  flags.cluster.folder = flags.state;
  const auto cluster = StartCluster(flags.cluster);
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
    std::cout << "stopped " << *stopped << " processes\n";
  }
  return 0;
}

int RunTheDemo(Flags& flags) {
  flags.demo.folder = flags.state + "-demo";
  flags.demo.json = flags.json;
  const auto memory = base::ParseSize(flags.demo_memory);
  if (!memory.ok()) return Fail(flags, memory.status(), 2);
  flags.demo.memory = *memory;
  const auto least = base::ParseSize(flags.demo_least);
  if (!least.ok()) return Fail(flags, least.status(), 2);
  flags.demo.least_bytes = *least;
  const auto result = RunDemo(flags.demo);
  if (!result.ok()) return Fail(flags, result.status(), 1);
  std::cout << (flags.json ? DemoToJson(*result) + "\n" : FormatDemo(*result)) << std::flush;
  return result->mismatches == 0 ? 0 : 1;
}

absl::StatusOr<std::string> FindSocket(const Flags& flags) {
  if (!flags.socket.empty()) return flags.socket;
  const char* const socket = std::getenv("TOKAMAK_SOCKET");
  if (!flags.cluster_chosen && socket != nullptr && *socket != '\0') return std::string(socket);
  const auto cluster = LoadCluster(flags.state);
  if (!cluster.ok()) return cluster.status();
  if (flags.node < 1 || flags.node > cluster->nodes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--node ", flags.node, ": the cluster has nodes 1 to ", cluster->nodes.size()));
  }
  return cluster->nodes[flags.node - 1].socket;
}

// Of the other node, for tune.
absl::StatusOr<std::string> FindPeerSocket(const Flags& flags) {
  if (!flags.tune.peer_socket.empty()) return flags.tune.peer_socket;
  const auto cluster = LoadCluster(flags.state);
  if (!cluster.ok() || !flags.socket.empty()) {
    return absl::InvalidArgumentError("tune: give the other node, by --peer or --peer-socket (see tok tune --help)");
  }
  const uint32_t peer = flags.tune.peer_node > 0 ? flags.tune.peer_node : flags.node == 1 ? 2 : 1;
  if (peer > cluster->nodes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tune: there is no node ", peer, ", the cluster has ", cluster->nodes.size(), ": two are needed"));
  }
  return cluster->nodes[peer - 1].socket;
}

Protocol ParseProtocol(const std::string& name) {
  if (name == "eager") return Protocol::kEager;
  if (name == "read") return Protocol::kRead;
  if (name == "write") return Protocol::kWrite;
  return Protocol::kAuto;
}

absl::Status RunCommand(const Flags& flags, const std::string& command, base::Duration timeout,
                        const CommandContext& context) {
  if (command == "put") return Put(context, flags.paths, flags.as);
  if (command == "get")
    return Get(context, {flags.name, flags.output, AsTimeout(timeout), ParseProtocol(flags.protocol)});
  if (command == "ls") return List(context);
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
  const auto timeout = base::ParseDuration(flags.timeout);
  if (!timeout.ok()) return Fail(flags, timeout.status(), 2);
  const auto socket = FindSocket(flags);
  if (!socket.ok()) return Fail(flags, socket.status(), 2);
  Undo undo;
  const Interruption interruption([&] {
    const absl::Status taken_back = undo.Interrupt();
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
  const absl::Status status = RunCommand(flags, command, *timeout, {*client, undo, flags.json});
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

int Run(int argc, char** argv) {
  Flags flags;
  CLI::App app("tok puts files into Tokamak's shared memory and gets them on other nodes.", "tok");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", absl::StrCat("tok ", base::kVersion));
  const auto* const socket = app.add_option("--socket", flags.socket, "the daemon's Unix socket");
  const auto* const state =
      app.add_option("--state", flags.state, "folder of the cluster that tok up starts")->capture_default_str();
  const auto* const node =
      app.add_option("--node", flags.node, "talk to this node of that cluster, from 1")->capture_default_str();
  app.add_flag("--json", flags.json, "print JSON");

  CLI::App* up = app.add_subcommand("up", "start a cluster on this machine: node i on 127.0.0.i");
  const char* const devices_help =
      "RDMA devices that the nodes take in turn, such as ibv:rxe0,ibv:rxe1; the software NIC unless given";
  up->add_option("--device", flags.cluster.places.devices, devices_help)->delimiter(',')->allow_extra_args(false);
  up->add_option("--nodes", flags.cluster.nodes, "how many")->check(CLI::Range(1, 64))->capture_default_str();
  up->add_option("--memory", flags.cluster.memory, "store of each node")->capture_default_str();
  up->add_option("--directory", flags.cluster.directory, "tokd: node 1 serves it; redis: a private redis-server")
      ->check(CLI::IsMember({"tokd", "redis"}))
      ->capture_default_str();
  up->add_option("--port", flags.cluster.places.port, "port that each node listens on")->capture_default_str();
  up->add_option("--udp-port", flags.cluster.places.udp_port, "UDP port of the software NICs")->capture_default_str();
  up->add_option("--tokd", flags.cluster.extra,
                 "a further flag for each tokd (again for each; % stands for the node's name)")
      ->allow_extra_args(false);
  app.add_subcommand("down", "stop the cluster that tok up started");

  CLI::App* demo =
      app.add_subcommand("demo", "move real files between three nodes by every protocol, and compare hashes");
  demo->add_option("--from", flags.demo.sources, "folders whose files are moved")->capture_default_str();
  demo->add_option("--least", flags.demo_least, "move files of at least this size together, if there are enough")
      ->capture_default_str();
  demo->add_option("--memory", flags.demo_memory, "store of each node; files up to a third of it are moved")
      ->capture_default_str();
  demo->add_option("--device", flags.demo.devices, devices_help)->delimiter(',')->allow_extra_args(false);
  demo->add_option("--tokd", flags.demo.tokd_flags, "a further flag for each tokd, as for up")->allow_extra_args(false);

  CLI::App* put = app.add_subcommand("put", "put files or folders, each as an object named like it");
  put->add_option("path", flags.paths, "FILE or DIR; one that fails or is interrupted leaves nothing")->required();
  put->add_option("--as", flags.as, "the object's name");

  CLI::App* get =
      app.add_subcommand("get", "get an object, from whichever node has it, and write it to a file or folder");
  get->add_option("name", flags.name, "name or 40-digit id")->required();
  get->add_option("-o,--output", flags.output,
                  "where to: a file, a folder, or - for standard output; the object's own name here unless given");
  get->add_option("--timeout", flags.timeout, "how long to wait for it to appear and arrive")->capture_default_str();
  get->add_option("--protocol", flags.protocol, "auto, eager, read or write")
      ->check(CLI::IsMember({"auto", "eager", "read", "write"}))
      ->capture_default_str();

  app.add_subcommand("ls", "list the objects of a node");
  CLI::App* stat = app.add_subcommand("stat", "one object and who holds it; without a name, the node's numbers");
  stat->add_option("name", flags.name, "name or 40-digit id");
  CLI::App* rm = app.add_subcommand("rm", "delete objects on all nodes, without asking; a folder with its files");
  auto* const names = rm->add_option("name", flags.names, "name or 40-digit id");
  rm->add_option("--prefix", flags.prefix,
                 "delete all objects that the node holds and whose names begin like this, such as dict/")
      ->excludes(names);
  AddCopiesCommands(app, flags.copies);
  app.add_subcommand("nodes", "list the nodes of the cluster");

  doctor::AddCommand(app, flags.doctor);
  tune::AddCommand(app, flags.tune);
  verbs::AddCommand(app, flags.verbs);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // for help or the version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    flags.json = WantsJson(argc, argv);
    return Fail(flags, absl::InvalidArgumentError(absl::StrCat(error.what(), " (see tok --help)")), 2);
  }
  if (absl::Status status = Complete(flags); !status.ok()) return Fail(flags, status, 2);
  flags.cluster_chosen = state->count() + node->count() > 0;
  if (socket->count() > 0 && node->count() > 0) {
    return Fail(flags, absl::InvalidArgumentError("--socket and --node: give one of them"), 2);
  }
  const std::string command = app.get_subcommands().front()->get_name();
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
