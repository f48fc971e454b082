// PolicyChoice is the value of tokd --policy: a table, a file with one, or learning.
//
//  eager:32KiB,read      the table itself (lib/transport/policy/policy.h)
//  FILE.json             a file that tok tune wrote (lib/daemon/flags/policy_file.h)
//  adaptive              learns from the pulls (lib/transport/policy/adaptive_policy.h)
//  adaptive:TABLE        the same, starting from a table: either of the first two
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/transport/policy/policy.h"

namespace tokamak::daemon {

struct PolicyChoice {
  std::optional<transport::Policy> table;  // nullopt: the devices' own
  bool adaptive = false;
  std::string origin = "built in";  // for the log
};

// Reads a named file. kInvalidArgument: one line.
absl::StatusOr<PolicyChoice> ParsePolicyChoice(const std::string& text);

}  // namespace tokamak::daemon
