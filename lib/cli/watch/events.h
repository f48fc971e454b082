// `tok events`: follows the objects of one node and the nodes of the cluster, one event a line.
//
// From the first line on, which names the node, no event is missed.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command EventsCommand();

}  // namespace tokamak::cli
