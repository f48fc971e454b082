// `tok top`: the nodes of the cluster as they are now, again and again: memory, objects, transfers,
// state. Whichever node is asked shows them all.
//
// On a terminal each view takes the place of the one before, keys scroll, and q ends; elsewhere views
// follow each other.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command TopCommand();

}  // namespace tokamak::cli
