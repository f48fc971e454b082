// `tok rm`: deletes objects on all nodes, a folder's with the files that it lists.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command RemoveCommand();

}  // namespace tokamak::cli
