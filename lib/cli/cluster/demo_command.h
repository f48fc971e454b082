// `tok demo`: the flags and output of a Demo (demo.h).
#pragma once

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command DemoCommand();

}  // namespace tokamak::cli
