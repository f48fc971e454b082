// The commands put, get, stat, rm and nodes, as they are run.
//
// Put and Remove go on with the others where one of several fails, as cp and rm do: each failure is
// printed, and the status says how many there were.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "lib/cli/command.h"
#include "tokamak/timeout.h"
#include "tokamak/types.h"

namespace tokamak::cli {

// Does all, one after the other. What fails does not stop the others, unless it would be the same
// with them.
absl::Status ForEach(const CommandContext& context, const std::vector<std::string>& items, const char* verb,
                     absl::FunctionRef<absl::Status(const std::string& item)> work);

absl::Status Put(const CommandContext& context, const std::vector<std::string>& paths, const std::string& as);

struct GetFlags {
  std::string name;
  std::string output;
  Timeout timeout = std::chrono::seconds(30);
  Protocol protocol = Protocol::kAuto;
};
// Where the object goes to standard output, nothing else does: what is said goes to standard error.
absl::Status Get(const CommandContext& context, const GetFlags& flags);

// With a name: one object. Without: the numbers of the node.
absl::Status Stat(const CommandContext& context, const std::string& name);

// A directory's object takes the files that it lists along.
absl::Status Remove(const CommandContext& context, const std::vector<std::string>& names);

// Deletes what this node holds under names that begin with `prefix`.
absl::Status RemoveByPrefix(const CommandContext& context, const std::string& prefix);

absl::Status Nodes(const CommandContext& context);

}  // namespace tokamak::cli
