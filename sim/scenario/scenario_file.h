// ScenarioFile turns JSON, as docs/simulation.md describes it, into a Scenario.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "sim/scenario/scenario.h"

namespace tokamak::sim {

// Files that it names are found relative to `folder`. kInvalidArgument: one sentence that says what
// is wrong, where, and what would be right.
absl::StatusOr<Scenario> ScenarioFromJson(const nlohmann::json& value, const std::string& folder);

// The text of a file as JSON, not yet looked at. kNotFound: it cannot be read.
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path);

// Changes one member, named by the keys that lead to it: "nic.congestion=dcqcn",
// "workload.0.bytes=1MB". What is no JSON is a text.
absl::Status SetMember(absl::string_view assignment, nlohmann::json* value);

}  // namespace tokamak::sim
