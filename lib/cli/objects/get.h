// `tok get`: gets an object, from any node that has it, and writes it to a file or folder.
//
// If the object goes to standard output, messages go to standard error.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command GetCommand();

}  // namespace tokamak::cli
