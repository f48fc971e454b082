// ScenarioFile turns JSON, as in docs/simulation.md, into a Scenario.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "sim/scenario/scenario.h"

namespace tokamak::sim {

// Files in it are relative to `folder`. kInvalidArgument: one sentence that names the mistake, its
// place, and the remedy.
absl::StatusOr<Scenario> ScenarioFromJson(const nlohmann::json& value, const std::string& folder);

// Reads a file as JSON, unchecked. kNotFound: it cannot be read.
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path);

// Changes one member, named by the keys that lead to it: "nic.congestion=dcqcn",
// "workload.0.bytes=1MB". A value that is no JSON is a text.
absl::Status SetMember(absl::string_view assignment, nlohmann::json* value);

}  // namespace tokamak::sim
