// The one table of tok's commands and flags. `tok help` prints it; man pages and completion are
// made of that (lib/cli/help_pages.py).
#pragma once

#include "CLI/CLI.hpp"
#include "lib/cli/flags.h"

namespace tokamak::cli {

// Enters everything into `app`, which will write to `flags`.
void DescribeCommandLine(CLI::App& app, Flags& flags);

}  // namespace tokamak::cli
