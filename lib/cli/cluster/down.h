// `tok down`: stops the cluster that tok up started.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command DownCommand();

}  // namespace tokamak::cli
