// Which daemons the flags mean.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cli/common/flags.h"

namespace tokamak::cli {

// The socket of the one that a command talks to. `by_command`: of the one that its own flags name;
// empty: none.
absl::StatusOr<std::string> FindSocket(const Flags& flags, const std::string& by_command);

// Of the nodes that tok up started beside the one at `socket`; none where that is none of them.
std::vector<std::string> FindSocketsBeside(const Flags& flags, const std::string& socket);

}  // namespace tokamak::cli
