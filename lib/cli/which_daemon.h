// Which daemons the flags mean.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/cli/flags.h"

namespace tokamak::cli {

// The socket of the one that a command talks to.
absl::StatusOr<std::string> FindSocket(const Flags& flags);

// Of the other node, for tune.
absl::StatusOr<std::string> FindPeerSocket(const Flags& flags);

}  // namespace tokamak::cli
