#include "lib/cli/command_line.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/base/version.h"
#include "lib/cli/bench/bench.h"
#include "lib/cli/cluster/demo_command.h"
#include "lib/cli/cluster/down.h"
#include "lib/cli/cluster/nodes.h"
#include "lib/cli/cluster/secret.h"
#include "lib/cli/cluster/up.h"
#include "lib/cli/common/command.h"
#include "lib/cli/doctor/command.h"
#include "lib/cli/help.h"
#include "lib/cli/objects/copies.h"
#include "lib/cli/objects/get.h"
#include "lib/cli/objects/list.h"
#include "lib/cli/objects/put.h"
#include "lib/cli/objects/rm.h"
#include "lib/cli/objects/stat.h"
#include "lib/cli/objects/wait.h"
#include "lib/cli/tune_command.h"
#include "lib/cli/verbs/command.h"
#include "lib/cli/watch/events.h"
#include "lib/cli/watch/top.h"
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

// Without a daemon.
template <typename OwnFlags>
Command OfPackage(const char* name, void (*add)(CLI::App& app, OwnFlags& own),
                  int (*run)(const OwnFlags& own, bool json)) {
  const auto own = std::make_shared<OwnFlags>();
  Command command;
  command.name = name;
  command.add = [add, own](CLI::App& app) { add(app, *own); };
  command.run = Command::RunAlone([run, own](const Flags& flags) { return run(*own, flags.json); });
  return command;
}

}  // namespace

std::vector<Command> AllCommands() {
  return {
      UpCommand(),
      DownCommand(),
      DemoCommand(),
      PutCommand(),
      GetCommand(),
      ListCommand(),
      StatCommand(),
      RemoveCommand(),
      WaitCommand(),
      PrefetchCommand(),
      PinCommand(),
      UnpinCommand(),
      PushCommand(),
      NodesCommand(),
      TopCommand(),
      EventsCommand(),
      SecretCommand(),
      BenchCommand(),
      TuneCommand(),
      OfPackage("doctor", doctor::AddCommand, doctor::RunCommand),
      OfPackage("verbs", verbs::AddCommand, verbs::RunCommand),
      HelpCommand(),
  };
}

void DescribeCommandLine(CLI::App& app, Flags& flags, const std::vector<Command>& commands) {
  app.formatter(std::make_shared<daemon::HelpFormat>());  // inherited by every command
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

  for (const Command& command : commands) command.add(app);
}

}  // namespace tokamak::cli
