// Prints the result of put and get.
#pragma once

#include <ostream>
#include <string>

#include "lib/cli/common/command.h"
#include "lib/cli/objects/files.h"

namespace tokamak::cli {

// A terminal gets the first skipped entries, JSON all.
void PrintMoved(const CommandContext& context, std::ostream& out, const char* verb, const std::string& name,
                const Moved& moved);

}  // namespace tokamak::cli
