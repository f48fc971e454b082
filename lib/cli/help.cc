#include "lib/cli/help.h"

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/text/nearest_name.h"

namespace tokamak::cli {

namespace {

struct HelpFlags {
  std::string command;
  const CLI::App* app = nullptr;
};

void AddHelp(CLI::App& help, HelpFlags& own) {
  help.add_option("command", own.command, "which; all commands unless given");
  own.app = help.get_parent();
}

int Help(const Flags& flags, const HelpFlags& own) {
  const CLI::App& app = *own.app;
  if (own.command.empty()) {
    std::cout << app.help();
    return 0;
  }
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands({})) {
    names.push_back(command->get_name());
    if (names.back() != own.command) continue;
    std::cout << command->help(app.get_name());
    return 0;
  }
  return Fail(flags,
              absl::NotFoundError(absl::StrCat("there is no command ", own.command,
                                               base::DidYouMean(own.command, names), " (see tok --help)")),
              2);
}

}  // namespace

Command HelpCommand() {
  return CommandAlone({"help", "say what a command does, and its flags", "tok help get"}, AddHelp, Help);
}

}  // namespace tokamak::cli
