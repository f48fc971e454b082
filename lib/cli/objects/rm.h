// `tok rm`: deletes objects on all nodes. A folder's object takes the files that it lists along.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command RemoveCommand();

}  // namespace tokamak::cli
