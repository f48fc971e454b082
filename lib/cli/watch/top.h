// `tok top`: the nodes of the cluster, again and again: memory, objects, transfers, state. Any node
// shows them all.
//
// On a terminal each view replaces the last, keys scroll, q ends.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command TopCommand();

}  // namespace tokamak::cli
