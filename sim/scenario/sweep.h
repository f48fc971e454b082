// Sweep runs a scenario once for each combination of values, each in a process of its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/scenario/command_line.h"

namespace tokamak::sim {

// "KEY=VALUE" for each key.
using SweepPoint = std::vector<std::string>;

// Combines "KEY=A,B,C" with "OTHER=D,E"; commas in brackets and braces belong to a value.
// kInvalidArgument: malformed.
absl::StatusOr<std::vector<SweepPoint>> SweepPoints(const std::vector<std::string>& set);

// Runs `program run SCENARIO --set ... --out OUT/N` for each and writes OUT/points.json. Returns
// the worst exit code.
absl::StatusOr<int> RunSweep(const CommandLine& command, const std::string& program);

}  // namespace tokamak::sim
