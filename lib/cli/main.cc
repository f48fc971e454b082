// tok: the command line of Tokamak. `tok up` starts a cluster on this machine; the other commands
// talk to one daemon.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/cli/cluster/cluster.h"
#include "lib/cli/cluster/which_daemon.h"
#include "lib/cli/command_line.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/command.h"
#include "lib/cli/common/flags.h"
#include "lib/cli/common/interruption.h"
#include "lib/cli/common/output.h"
#include "lib/cli/common/undo.h"
#include "lib/daemon/flags/wrong_flags.h"
#include "tokamak/client.h"

namespace tokamak::cli {
namespace {

int Talk(const Flags& flags, const Command& command, const Command::RunWithDaemon& run) {
  const auto socket = FindSocket(flags, command.socket ? command.socket() : "");
  if (!socket.ok()) return Fail(flags, socket.status(), 2);
  Undo undo;
  const Interruption interruption([&] {
    const absl::Status taken_back = undo.Interrupt();
    if (command.is_endless) return;
    if (isatty(STDERR_FILENO) == 1) std::cerr << "\r\033[K";  // over a progress bar
    const std::string left =
        taken_back.ok() ? "" : absl::StrCat("; something is left half done: ", taken_back.message());
    PrintError(flags.json, absl::CancelledError(absl::StrCat("interrupted", left)));
  });
  ClientOptions options;
  options.name = "tok";
  auto client = AsAbsl(Client::Connect(*socket, options));
  if (!client.ok()) return Fail(flags, client.status(), 2);
  return run({*client, undo, flags, *socket});
}

// Makes paths absolute, for later commands in other folders.
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

// Opens closed descriptors 0 to 2, lest a file of ours be taken for standard output. Writing there
// still fails.
void OccupyStandardDescriptors() {
  int opened = 0;
  while (opened >= 0 && opened <= STDERR_FILENO) opened = open("/dev/null", O_RDONLY);
  if (opened > STDERR_FILENO) close(opened);
}

// Also before the flags are parsed.
bool WantsJson(int argc, char** argv) {
  return std::any_of(argv, argv + argc, [](const char* argument) { return std::strcmp(argument, "--json") == 0; });
}

int Run(int argc, char** argv) {
  Flags flags;
  flags.state = DefaultFolder();
  const std::vector<Command> commands = AllCommands();
  CLI::App app("tok puts files into Tokamak's shared memory and gets them on other nodes.", "tok");
  DescribeCommandLine(app, flags, commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // help or version
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
  const std::string name = app.get_subcommands().front()->get_name();
  const auto command =
      std::find_if(commands.begin(), commands.end(), [&](const Command& one) { return one.name == name; });
  CHECK(command != commands.end());
  if (const auto* const alone = std::get_if<Command::RunAlone>(&command->run)) return (*alone)(flags);
  return Talk(flags, *command, std::get<Command::RunWithDaemon>(command->run));
}

int Main(int argc, char** argv) {
  OccupyStandardDescriptors();
  int code = 1;
  try {
    code = Run(argc, argv);
  } catch (const std::exception& error) {  // of a library
    PrintError(WantsJson(argc, argv), absl::InternalError(absl::StrCat("unexpected error: ", error.what())));
  }
  return FinishOutput(WantsJson(argc, argv), code);
}

}  // namespace
}  // namespace tokamak::cli

int main(int argc, char** argv) { return tokamak::cli::Main(argc, argv); }
