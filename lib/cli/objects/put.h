// `tok put`: puts files, folders or standard input, each as an object.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command PutCommand();

}  // namespace tokamak::cli
