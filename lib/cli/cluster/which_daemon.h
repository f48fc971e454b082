// Finds the daemons that the flags mean.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cli/common/flags.h"

namespace tokamak::cli {

// Returns the socket of a command's daemon. `by_command`: named by its own flags; empty: none.
absl::StatusOr<std::string> FindSocket(const Flags& flags, const std::string& by_command);

// Returns the sockets of tok up's nodes beside that at `socket`; empty if it is none.
std::vector<std::string> FindSocketsBeside(const Flags& flags, const std::string& socket);

}  // namespace tokamak::cli
