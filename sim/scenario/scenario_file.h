// ScenarioFile turns JSON, as in docs/simulation.md, into a Scenario.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "sim/scenario/scenario.h"

namespace tokamak::sim {

// Files are relative to `folder`. kInvalidArgument: one sentence with mistake, place, and remedy.
absl::StatusOr<Scenario> ScenarioFromJson(const nlohmann::json& value, const std::string& folder);

// Reads JSON, unchecked. kNotFound: unreadable.
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path);

// Changes a member by its keys: "nic.congestion=dcqcn", "workload.0.bytes=1MB". No JSON: a text.
absl::Status SetMember(absl::string_view assignment, nlohmann::json* value);

}  // namespace tokamak::sim
