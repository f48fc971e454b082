// Finds the daemons that the flags mean.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cli/common/flags.h"

namespace tokamak::cli {

// Returns the socket of a command's daemon. `by_command`: the one that its own flags name; empty:
// none.
absl::StatusOr<std::string> FindSocket(const Flags& flags, const std::string& by_command);

// Returns the sockets of the nodes that tok up started beside the one at `socket`; empty if that is
// none of them.
std::vector<std::string> FindSocketsBeside(const Flags& flags, const std::string& socket);

}  // namespace tokamak::cli
