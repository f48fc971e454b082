// `tok events`: follows the objects of one node and the nodes of the cluster, one event a line.
//
// The first line names the followed node: all later events are seen.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command EventsCommand();

}  // namespace tokamak::cli
