// `tok stat`: one object and its holders; without a name, the node's numbers.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command StatCommand();

}  // namespace tokamak::cli
