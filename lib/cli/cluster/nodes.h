// `tok nodes`: lists the nodes of the cluster.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command NodesCommand();

}  // namespace tokamak::cli
