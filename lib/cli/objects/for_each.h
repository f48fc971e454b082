// Runs commands on several names: after a failure it goes on with the others, as cp and rm do.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "lib/cli/common/command.h"

namespace tokamak::cli {

// Prints each failure; the error has their number. Stops after an interruption, or without the
// daemon.
absl::Status ForEach(const CommandContext& context, const std::vector<std::string>& items, const char* verb,
                     absl::FunctionRef<absl::Status(const std::string& item)> work);

}  // namespace tokamak::cli
