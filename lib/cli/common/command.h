// A command of tok: its name, its flags, and the function that runs it. Each has its own pair of
// files; the table of all is in command_line.cc.
//
// A command is a struct of its flags, a function that declares them, and a function that runs it by
// them (CommandAlone, CommandWithDaemon). Each prints text or JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/cli/common/flags.h"
#include "lib/cli/common/undo.h"
#include "tokamak/client.h"

namespace tokamak::cli {

struct CommandContext {
  Client& client;
  Undo& undo;
  const Flags& flags;
  std::string socket;  // the client's
};

struct Command {
  // Both return the exit code. RunAlone needs no daemon; RunWithDaemon runs once tok is connected
  // to one.
  using RunAlone = std::function<int(const Flags& flags)>;
  using RunWithDaemon = std::function<int(const CommandContext& context)>;

  std::string name;
  std::function<void(CLI::App& app)> add;  // enters the command, its flags and its help
  std::variant<RunAlone, RunWithDaemon> run;
  std::function<std::string()> socket;  // of the daemon that the command's own flags name; empty: none
  bool is_endless = false;              // true if it runs until it is interrupted, which is then no error
};

// Prints the error. Returns `code`.
int Fail(const Flags& flags, const absl::Status& status, int code);

// Returns the exit code of a command that ended with `status`, and prints an error, except an
// interruption, which was reported already.
int ExitCode(const Flags& flags, const absl::Status& status);

// Enters a command whose help ends with an example. `about` is one line.
CLI::App* NewCommand(CLI::App& app, const std::string& name, const std::string& about, const std::string& example);

// The flags of a command that has none.
struct NoFlags {};
inline void AddNoFlags(CLI::App& /*command*/, NoFlags& /*own*/) {}

struct CommandHelp {
  std::string name;
  std::string about;
  std::string example;
};

template <typename OwnFlags>
Command CommandAlone(const CommandHelp& help, void (*add)(CLI::App& command, OwnFlags& own),
                     int (*run)(const Flags& flags, const OwnFlags& own)) {
  const auto own = std::make_shared<OwnFlags>();
  Command command;
  command.name = help.name;
  command.add = [help, add, own](CLI::App& app) { add(*NewCommand(app, help.name, help.about, help.example), *own); };
  command.run = Command::RunAlone([run, own](const Flags& flags) { return run(flags, *own); });
  return command;
}

// Pass `own` if the command's flags are needed elsewhere as well.
template <typename OwnFlags>
Command CommandWithDaemon(const CommandHelp& help, void (*add)(CLI::App& command, OwnFlags& own),
                          absl::Status (*run)(const CommandContext& context, const OwnFlags& own),
                          const std::shared_ptr<OwnFlags>& own = std::make_shared<OwnFlags>()) {
  Command command;
  command.name = help.name;
  command.add = [help, add, own](CLI::App& app) { add(*NewCommand(app, help.name, help.about, help.example), *own); };
  command.run = Command::RunWithDaemon(
      [run, own](const CommandContext& context) { return ExitCode(context.flags, run(context, *own)); });
  return command;
}

// Adds a flag for a duration, such as 250ms; the present `value` is shown as its default.
CLI::Option* AddDuration(CLI::App& command, const std::string& names, base::Duration& value, const std::string& about);

// Checks a count.
CLI::Validator AtLeastOne();

// Checks a node of tok up's cluster, by its number or its name, which becomes its number.
CLI::Validator NumberOfNode();

// Adds a flag for bytes, such as 64KiB.
CLI::Option* AddSize(CLI::App& command, const std::string& names, uint64_t& value, const std::string& about);

}  // namespace tokamak::cli
