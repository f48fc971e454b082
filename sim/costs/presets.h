// Presets are HostCosts by name, from presets.json, with a source for each figure, or from another
// file like it.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sim/costs/host_costs.h"

namespace tokamak::sim {

using Presets = std::map<std::string, HostCosts>;

// Parses a file. kInvalidArgument: one sentence with mistake, place and remedy, also for a figure
// without a source.
absl::StatusOr<Presets> ParsePresets(absl::string_view text);

// Returns presets.json's, part of the program.
const Presets& ShippedPresets();

// Finds a shipped preset ("cx6-200g"), the only one of a file ("mine.json"), or one of several
// ("mine.json:old"); files are relative to `folder`. kNotFound, kInvalidArgument: the text names
// alternatives.
absl::StatusOr<HostCosts> FindPreset(const std::string& name, const std::string& folder);

}  // namespace tokamak::sim
