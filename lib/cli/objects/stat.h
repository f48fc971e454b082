// `tok stat`: one object and who holds it; without a name, the numbers of the node.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command StatCommand();

}  // namespace tokamak::cli
