#include "lib/cli/command_line.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/base/version.h"
#include "lib/cli/command.h"
#include "lib/daemon/flags/help_format.h"

namespace tokamak::cli {

namespace {

constexpr char kFooter[] =
    "Which daemon: --socket PATH; or node --node of the cluster in --state, if one of the two is given; or "
    "$TOKAMAK_SOCKET; or node 1 of the cluster that tok up started; or the service at /run/tokamak/tokd.sock.\n"
    "Example:\n"
    "  tok up --nodes 3\n"
    "  tok put /usr/share/dict --as dict\n"
    "  tok --node 2 get dict -o /tmp/dict --protocol read\n"
    "  tok down\n"
    "Exit codes: 0 done, 1 it failed, 2 wrong flags or no daemon; of doctor: 0 RDMA works here, 1 it does not; "
    "of verbs: the command's.\n"
    "Errors are one line on standard error; with --json that is {\"error\": CODE, \"message\": TEXT}.\n"
    "Control characters, and bytes that are not UTF-8, are printed as \\xHH; JSON has the latter as \\xHH, too.";

constexpr char kDevices[] =
    "RDMA devices that the nodes take in turn, such as ibv:rxe0,ibv:rxe1; the software NIC unless given";

void DescribeClusters(CLI::App& app, Flags& flags) {
  CLI::App* const up = NewCommand(
      app, "up",
      "start a cluster on this machine: node i on 127.0.0.i, or another loopback network where that is taken",
      "tok up --nodes 2 --memory 64MiB");
  up->add_option("--device", flags.cluster.places.devices, kDevices)->delimiter(',')->allow_extra_args(false);
  up->add_option("--nodes", flags.cluster.nodes, "how many")->check(CLI::Range(1, 64))->capture_default_str();
  up->add_option("--memory", flags.cluster.memory, "store of each node")->type_name("SIZE")->capture_default_str();
  up->add_option("--directory", flags.cluster.directory, "tokd: node 1 serves it; redis: a private redis-server")
      ->check(CLI::IsMember({"tokd", "redis"}))
      ->capture_default_str();
  up->add_option("--port", flags.cluster.places.port, "port that each node listens on")->capture_default_str();
  up->add_option("--udp-port", flags.cluster.places.udp_port,
                 "UDP port of the software NICs; they take the next one as well, for bulk")
      ->capture_default_str();
  up->add_option("--tokd", flags.cluster.extra,
                 "a further flag for each tokd (again for each; % stands for the node's name)")
      ->allow_extra_args(false);
  NewCommand(app, "down", "stop the cluster that tok up started", "tok down");

  CLI::App* const demo =
      NewCommand(app, "demo", "move real files between three nodes by every protocol, and compare hashes",
                 "tok demo --from /usr/include --least 1MiB");
  demo->add_option("--from", flags.demo.sources, "folders whose files are moved")
      ->type_name("DIR")
      ->capture_default_str();
  AddSize(*demo, "--least", flags.demo.least_bytes, "move files of at least this size together, if there are enough")
      ->default_str("200MiB");
  AddSize(*demo, "--memory", flags.demo.memory, "store of each node; files up to a third of it are moved")
      ->default_str("1GiB");
  demo->add_option("--device", flags.demo.devices, kDevices)->delimiter(',')->allow_extra_args(false);
  demo->add_option("--tokd", flags.demo.tokd_flags, "a further flag for each tokd, as for up")->allow_extra_args(false);
}

void DescribeObjects(CLI::App& app, Flags& flags) {
  CLI::App* const put = NewCommand(app, "put", "put files or folders, each as an object named like it",
                                   "tok put /etc/os-release --as release");
  put->add_option("path", flags.paths,
                  "files or folders, or - for standard input; one that fails or is interrupted leaves nothing")
      ->type_name("FILE")
      ->required();
  put->add_option("--as", flags.as, "the object's name");

  CLI::App* const get =
      NewCommand(app, "get", "get an object, from whichever node has it, and write it to a file or folder",
                 "tok --node 2 get release -o release.txt");
  get->add_option("name", flags.name, "name or 40-digit id")->required();
  get->add_option("-o,--output", flags.output,
                  "where to: a file, a folder, or - for standard output; the object's own name here unless given")
      ->type_name("FILE");
  AddDuration(*get, "--timeout", flags.timeout, "how long to wait while nothing of it comes");
  get->add_option("--protocol", flags.protocol, "what moves it")
      ->check(CLI::IsMember({"auto", "eager", "read", "write"}))
      ->capture_default_str();

  AddList(app, flags.list);
  CLI::App* const stat =
      NewCommand(app, "stat", "one object and who holds it; without a name, the node's numbers", "tok stat release");
  stat->add_option("name", flags.name, "name or 40-digit id");
  CLI::App* const rm =
      NewCommand(app, "rm", "delete objects on all nodes, without asking; a folder with its files", "tok rm release");
  auto* const names = rm->add_option("name", flags.names, "names or 40-digit ids");
  rm->add_option("--prefix", flags.prefix,
                 "delete all objects that the node holds and whose names begin like this, such as dict/")
      ->excludes(names);
  AddWait(app, flags.wait);
  AddCopiesCommands(app, flags.copies);
}

}  // namespace

void DescribeCommandLine(CLI::App& app, Flags& flags) {
  app.formatter(std::make_shared<daemon::HelpFormat>());  // of every command: they inherit it
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", absl::StrCat("tok ", base::kVersion), "print the version and end");
  app.set_help_flag("-h,--help", "print this and end");
  app.add_option("--socket", flags.socket, "the daemon's Unix socket")->type_name("FILE");
  app.add_option(
         "--state", flags.state,
         "folder of the cluster that tok up starts; $XDG_RUNTIME_DIR/tokamak, or /tmp/tokamak-UID, unless given")
      ->type_name("DIR");
  app.add_option("--node", flags.node, "talk to this node of that cluster: its name, or its number")
      ->transform(NumberOfNode())
      ->type_name("NODE")
      ->capture_default_str();
  app.add_flag("--json", flags.json, "print JSON");

  DescribeClusters(app, flags);
  DescribeObjects(app, flags);
  NewCommand(app, "nodes", "list the nodes of the cluster", "tok nodes");
  AddTop(app, flags.top);
  AddEvents(app, flags.events);
  AddBench(app, flags.bench);
  tune::AddCommand(app, flags.tune);
  doctor::AddCommand(app, flags.doctor);
  verbs::AddCommand(app, flags.verbs);
  NewCommand(app, "help", "say what a command does, and its flags", "tok help get")
      ->add_option("command", flags.help_for, "which; all commands unless given");
}

}  // namespace tokamak::cli
