// For commands that take several names: goes on with the others where one fails, as cp and rm do.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "lib/cli/common/command.h"

namespace tokamak::cli {

// Does all, one after the other; prints each failure and returns how many there were. Stops where
// the others would fail the same way: after an interruption, or without the daemon.
absl::Status ForEach(const CommandContext& context, const std::vector<std::string>& items, const char* verb,
                     absl::FunctionRef<absl::Status(const std::string& item)> work);

}  // namespace tokamak::cli
