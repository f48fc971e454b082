// The table of tok's commands, and the flags of every command. Man pages and completion come from
// `tok help` (lib/cli/pages/help_pages.py).
#pragma once

#include <vector>

#include "CLI/CLI.hpp"
#include "lib/cli/common/command.h"
#include "lib/cli/common/flags.h"

namespace tokamak::cli {

// In the help's order.
std::vector<Command> AllCommands();

void DescribeCommandLine(CLI::App& app, Flags& flags, const std::vector<Command>& commands);

}  // namespace tokamak::cli
