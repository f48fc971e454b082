// Programs that tests run to see and to change the kernel's network: tc, ip, rdma.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tokamak::faults {

// Runs a program, a minute at most, and returns what it printed. kUnavailable: it failed, or is not
// there; the text says more.
absl::StatusOr<std::string> Output(const std::vector<std::string>& argv);

// The same, where only its success matters.
absl::Status Run(const std::vector<std::string>& argv);

}  // namespace tokamak::faults
