// `tok up`: starts a cluster of several tokd on this machine (cluster.h).
#pragma once

#include <string>
#include <vector>

#include "lib/cli/common/command.h"

namespace tokamak::cli {

Command UpCommand();

void AddNodeDevices(CLI::App& command, std::vector<std::string>& devices);

}  // namespace tokamak::cli
