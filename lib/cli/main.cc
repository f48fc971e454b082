// tok: the command line of Tokamak. `tok up` starts a cluster on this machine; the other commands talk to one daemon.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "lib/base/units.h"
#include "lib/cli/cluster.h"
#include "lib/cli/commands.h"
#include "lib/cli/demo.h"
#include "lib/cli/doctor/command.h"
#include "lib/client/client.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {
namespace {

constexpr char kFooter[] =
    "Which daemon: --socket PATH, else $TOKAMAK_SOCKET, else node --node (1 unless given) of the cluster that tok up "
    "started.\n"
    "Example:\n"
    "  tok up --nodes 3\n"
    "  tok put /usr/share/dict --as dict\n"
    "  tok --node 2 get dict -o /tmp/dict --protocol read\n"
    "  tok down\n"
    "Exit codes: 0 done, 1 it failed, 2 wrong flags or no daemon; of doctor: 0 RDMA works here, 1 it does not.";

struct Flags {
  std::string socket;
  std::string state = DefaultFolder();
  uint32_t node = 1;
  bool json = false;
  ClusterSettings cluster;
  DemoSettings demo;
  doctor::CommandFlags doctor;
  std::string demo_memory = "1GiB";
  std::string demo_least = "200MiB";
  std::vector<std::string> paths;
  std::string as;
  std::string name;
  std::string output;
  std::string timeout = "30s";
  std::string protocol = "auto";
  std::vector<std::string> names;
};

int Fail(const absl::Status& status, int code) {
  std::cerr << "tok: " << status.message() << std::endl;
  return code;
}

void PrintCluster(const Flags& flags, const Cluster& cluster) {
  if (flags.json) {
    nlohmann::json nodes = nlohmann::json::array();
    for (const ClusterProcess& node : cluster.nodes) {
      nodes.push_back({{"name", node.name}, {"pid", node.pid}, {"socket", node.socket}});
    }
    std::cout << nlohmann::json({{"state", flags.state}, {"nodes", nodes}}).dump(2) << "\n";
    return;
  }
  for (const ClusterProcess& node : cluster.nodes) {
    std::cout << node.name << "  pid " << node.pid << "  " << node.socket << "\n";
  }
  std::cout << cluster.nodes.size() << " nodes are up; stop them with tok down\n";
}

int Up(Flags& flags) {
  flags.cluster.folder = flags.state;
  const auto cluster = StartCluster(flags.cluster);
  if (!cluster.ok()) return Fail(cluster.status(), 2);
  PrintCluster(flags, *cluster);
  return 0;
}

int Down(const Flags& flags) {
  const auto stopped = StopCluster(flags.state);
  if (!stopped.ok()) return Fail(stopped.status(), 2);
  if (flags.json) {
    std::cout << nlohmann::json({{"stopped", *stopped}}) << "\n";
  } else {
    std::cout << "stopped " << *stopped << " processes\n";
  }
  return 0;
}

int RunTheDemo(Flags& flags) {
  flags.demo.folder = flags.state + "-demo";
  flags.demo.json = flags.json;
  const auto memory = base::ParseSize(flags.demo_memory);
  if (!memory.ok()) return Fail(memory.status(), 2);
  flags.demo.memory = *memory;
  const auto least = base::ParseSize(flags.demo_least);
  if (!least.ok()) return Fail(least.status(), 2);
  flags.demo.least_bytes = *least;
  const auto result = RunDemo(flags.demo);
  if (!result.ok()) return Fail(result.status(), 1);
  std::cout << (flags.json ? DemoToJson(*result) + "\n" : FormatDemo(*result)) << std::flush;
  return result->mismatches == 0 ? 0 : 1;
}

absl::StatusOr<std::string> FindSocket(const Flags& flags) {
  if (!flags.socket.empty()) return flags.socket;
  if (const char* socket = std::getenv("TOKAMAK_SOCKET"); socket != nullptr && *socket != '\0')
    return std::string(socket);
  const auto cluster = LoadCluster(flags.state);
  if (!cluster.ok()) return cluster.status();
  if (flags.node < 1 || flags.node > cluster->nodes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--node ", flags.node, ": the cluster has nodes 1 to ", cluster->nodes.size()));
  }
  return cluster->nodes[flags.node - 1].socket;
}

client::Protocol ParseProtocol(const std::string& name) {
  if (name == "eager") return client::Protocol::kEager;
  if (name == "read") return client::Protocol::kRead;
  if (name == "write") return client::Protocol::kWrite;
  return client::Protocol::kAuto;
}

// The commands that need a daemon.
int Talk(const Flags& flags, const std::string& command) {
  const auto timeout = base::ParseDuration(flags.timeout);
  if (!timeout.ok()) return Fail(timeout.status(), 2);
  const auto socket = FindSocket(flags);
  if (!socket.ok()) return Fail(socket.status(), 2);
  client::ClientOptions options;
  options.name = "tok";
  auto client = client::Client::Connect(*socket, options);
  if (!client.ok()) return Fail(client.status(), 2);
  const CommandContext context{*client, flags.json};
  absl::Status status;
  if (command == "put") status = Put(context, flags.paths, flags.as);
  if (command == "get") status = Get(context, {flags.name, flags.output, *timeout, ParseProtocol(flags.protocol)});
  if (command == "ls") status = List(context);
  if (command == "stat") status = Stat(context, flags.name);
  if (command == "rm") status = Remove(context, flags.names);
  if (command == "nodes") status = Nodes(context);
  return status.ok() ? 0 : Fail(status, 1);
}

// What CLI11 took, brought into shape. Later commands are given in other folders, so paths are whole.
void Complete(Flags& flags) {
  flags.state = std::filesystem::absolute(flags.state).lexically_normal().string();
  while (flags.state.size() > 1 && flags.state.back() == '/') flags.state.pop_back();
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("tok puts files into Tokamak's shared memory and gets them on other nodes.", "tok");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--socket", flags.socket, "the daemon's Unix socket");
  app.add_option("--state", flags.state, "folder of the cluster that tok up starts")->capture_default_str();
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
  demo->add_option("--least", flags.demo_least, "files of so much together, if there are so many")
      ->capture_default_str();
  demo->add_option("--memory", flags.demo_memory, "store of each node; files up to a third of it are moved")
      ->capture_default_str();
  demo->add_option("--device", flags.demo.devices, devices_help)->delimiter(',')->allow_extra_args(false);
  demo->add_option("--tokd", flags.demo.tokd_flags, "a further flag for each tokd, as for up")->allow_extra_args(false);

  CLI::App* put = app.add_subcommand("put", "put files or folders, each as an object named like it");
  put->add_option("path", flags.paths, "FILE or DIR")->required();
  put->add_option("--as", flags.as, "the object's name");

  CLI::App* get =
      app.add_subcommand("get", "get an object, from whichever node has it, and write it to a file or folder");
  get->add_option("name", flags.name, "name or 40-digit id")->required();
  get->add_option("-o,--output", flags.output, "where to; the object's own name in this folder unless given");
  get->add_option("--timeout", flags.timeout, "wait so long for it to appear and arrive")->capture_default_str();
  get->add_option("--protocol", flags.protocol, "auto, eager, read or write")
      ->check(CLI::IsMember({"auto", "eager", "read", "write"}))
      ->capture_default_str();

  app.add_subcommand("ls", "list the objects of a node");
  CLI::App* stat = app.add_subcommand("stat", "one object and who holds it; without a name, the node's numbers");
  stat->add_option("name", flags.name, "name or 40-digit id");
  CLI::App* rm = app.add_subcommand("rm", "delete objects on all nodes; a folder with its files");
  rm->add_option("name", flags.names, "name or 40-digit id")->required();
  app.add_subcommand("nodes", "list the nodes of the cluster");

  doctor::AddCommand(app, flags.doctor);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "tok: " << error.what() << " (see tok --help)" << std::endl;
    return 2;
  }
  Complete(flags);
  const std::string command = app.get_subcommands().front()->get_name();
  if (command == "up") return Up(flags);
  if (command == "down") return Down(flags);
  if (command == "demo") return RunTheDemo(flags);
  if (command == "doctor") return doctor::RunCommand(flags.doctor, flags.json);
  return Talk(flags, command);
}

}  // namespace
}  // namespace tokamak::cli

int main(int argc, char** argv) { return tokamak::cli::Main(argc, argv); }
