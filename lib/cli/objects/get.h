// `tok get`: gets an object, from any node that has it, and writes it to a file or folder.
//
// With the object on standard output, messages are on standard error.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command GetCommand();

}  // namespace tokamak::cli
