// Presets are HostCosts by name: those of presets.json, which has a source for each figure, or of
// another file like it.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sim/costs/host_costs.h"

namespace tokamak::sim {

using Presets = std::map<std::string, HostCosts>;

// Parses a file's text. kInvalidArgument: one sentence that names the mistake, its place, and the
// remedy; a figure without a source is a mistake, too.
absl::StatusOr<Presets> ParsePresets(absl::string_view text);

// Returns those of presets.json, which is part of the program.
const Presets& ShippedPresets();

// Finds a preset by its name: a shipped one ("cx6-200g"), the only one of a file ("mine.json"), or
// one of several ("mine.json:old"). Files are relative to `folder`. kNotFound, kInvalidArgument:
// the text names the alternatives.
absl::StatusOr<HostCosts> FindPreset(const std::string& name, const std::string& folder);

}  // namespace tokamak::sim
