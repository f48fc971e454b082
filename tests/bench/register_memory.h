// The cost of registering memory by itself: the least that a transfer with --registration on_demand
// pays on each side.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/baselines.h"

namespace tokamak::bench {

// Registers and revokes shared memory that was touched before, with the device of this name, opened
// for it alone.
absl::StatusOr<std::unique_ptr<Contender>> OpenRegistration(const std::string& device);

}  // namespace tokamak::bench
