// Prints the result of put and get: what was moved.
#pragma once

#include <ostream>
#include <string>

#include "lib/cli/common/command.h"
#include "lib/cli/objects/files.h"

namespace tokamak::cli {

// On a terminal the first few entries that were skipped are named; JSON has them all.
void PrintMoved(const CommandContext& context, std::ostream& out, const char* verb, const std::string& name,
                const Moved& moved);

}  // namespace tokamak::cli
