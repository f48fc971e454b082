// The one table of tok's commands, and the flags of every command. `tok help` prints them; man pages
// and completion are made of that (lib/cli/pages/help_pages.py).
#pragma once

#include <vector>

#include "CLI/CLI.hpp"
#include "lib/cli/common/command.h"
#include "lib/cli/common/flags.h"

namespace tokamak::cli {

// In the order in which they are listed.
std::vector<Command> AllCommands();

// Enters everything into `app`, which will write to `flags` and to the commands' own.
void DescribeCommandLine(CLI::App& app, Flags& flags, const std::vector<Command>& commands);

}  // namespace tokamak::cli
