// `tok prefetch`, `pin`, `unpin` and `push`: decide on which nodes copies lie. A folder's object
// takes its files along.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command PrefetchCommand();
Command PinCommand();
Command UnpinCommand();
Command PushCommand();

}  // namespace tokamak::cli
