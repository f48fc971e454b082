// `tok prefetch`, `pin`, `unpin` and `push`: on which nodes copies of objects lie. A folder's
// object takes the files that it lists along.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/cli/commands.h"

namespace tokamak::cli {

struct CopiesFlags {
  std::vector<std::string> names;
  base::Duration timeout = base::Seconds(30);
  std::string to;  // a node's name
};

void AddCopiesCommands(CLI::App& app, CopiesFlags& flags);

// Whether `command` is one of these.
bool IsCopiesCommand(const std::string& command);

// Goes on with the other names where one fails, as Put and Remove do.
absl::Status RunCopiesCommand(const CommandContext& context, const std::string& command, const CopiesFlags& flags);

}  // namespace tokamak::cli
