// `tok events`: follows what happens, one event a line: to the objects of one node, and to the
// nodes of the cluster.
//
// Begins with a line that names the node that is followed: all that happens from then on is seen.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command EventsCommand();

}  // namespace tokamak::cli
