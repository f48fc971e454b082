// `tok wait`: waits until objects exist, on any node or on this one, without moving them.
//
// Prints the existing ones; kDeadlineExceeded names the missing ones if too few exist.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command WaitCommand();

}  // namespace tokamak::cli
