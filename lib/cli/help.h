// `tok help`: what a command does, and its flags.
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command HelpCommand();

}  // namespace tokamak::cli
