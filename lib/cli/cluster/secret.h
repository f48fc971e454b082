// `tok secret`: makes the secret that the nodes of a cluster share, and says which one a file has.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command SecretCommand();

}  // namespace tokamak::cli
