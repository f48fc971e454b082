// The table of tok's commands, and the flags of every command. `tok help` prints them; man pages
// and completion are generated from that (lib/cli/pages/help_pages.py).
#pragma once

#include <vector>

#include "CLI/CLI.hpp"
#include "lib/cli/common/command.h"
#include "lib/cli/common/flags.h"

namespace tokamak::cli {

// Returns all commands in the order of the help.
std::vector<Command> AllCommands();

// Enters everything into `app`, which writes to `flags` and to the commands' own.
void DescribeCommandLine(CLI::App& app, Flags& flags, const std::vector<Command>& commands);

}  // namespace tokamak::cli
