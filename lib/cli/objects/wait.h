// `tok wait`: waits until objects exist, on any node, or on this one. Moves nothing.
//
// Prints which exist; fails with kDeadlineExceeded where too few do, and names the missing ones.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command WaitCommand();

}  // namespace tokamak::cli
