// `tok get`: gets an object, from whichever node has it, and writes it to a file or folder.
//
// Where the object goes to standard output nothing else does: messages go to standard error.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command GetCommand();

}  // namespace tokamak::cli
