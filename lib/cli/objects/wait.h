// `tok wait`: waits until objects exist, on any node or on this one, without moving them.
//
// Prints those that exist; kDeadlineExceeded names missing ones if too few do.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command WaitCommand();

}  // namespace tokamak::cli
