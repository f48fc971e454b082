// TopologyFile turns JSON, as in docs/simulation.md, into a Topology: either a generator and its
// numbers, or hosts, switches and cables one by one.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "sim/fabric/topology/topology.h"
#include "sim/json/json_object.h"

namespace tokamak::sim {

// kInvalidArgument: one sentence that names the mistake and its place.
absl::StatusOr<Topology> ParseTopology(absl::string_view text);
absl::StatusOr<Topology> TopologyFromJson(const nlohmann::json& value);

// kNotFound: no such file, or unreadable.
absl::StatusOr<Topology> ReadTopologyFile(const std::string& path);

}  // namespace tokamak::sim
