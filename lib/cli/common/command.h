// A command of tok: its name, its flags, and the function that runs it. Each has its own pair of
// files; the table of all is in command_line.cc.
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
  std::string socket;
};

struct Command {
  // Return the exit code. RunAlone needs no daemon; RunWithDaemon gets a connection.
  using RunAlone = std::function<int(const Flags& flags)>;
  using RunWithDaemon = std::function<int(const CommandContext& context)>;

  std::string name;
  std::function<void(CLI::App& app)> add;
  std::variant<RunAlone, RunWithDaemon> run;
  std::function<std::string()> socket;  // of the daemon by the command's own flags; empty: none
  bool is_endless = false;              // runs until interrupted, which is no error
};

// Returns `code`.
int Fail(const Flags& flags, const absl::Status& status, int code);

// Returns the exit code; prints an error, except an interruption, already reported.
int ExitCode(const Flags& flags, const absl::Status& status);

CLI::App* NewCommand(CLI::App& app, const std::string& name, const std::string& about, const std::string& example);

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

// Pass `own` if its flags are needed elsewhere.
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

// Adds a duration, such as 250ms; `value` is the default.
CLI::Option* AddDuration(CLI::App& command, const std::string& names, base::Duration& value, const std::string& about);

CLI::Validator AtLeastOne();

// Takes a number or name of a node of tok up; becomes the number.
CLI::Validator NumberOfNode();

// Adds bytes, such as 64KiB.
CLI::Option* AddSize(CLI::App& command, const std::string& names, uint64_t& value, const std::string& about);

}  // namespace tokamak::cli
