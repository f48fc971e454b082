// `tok tune`: chooses the two nodes (tune/command.h measures).
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command TuneCommand();

}  // namespace tokamak::cli
