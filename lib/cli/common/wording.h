// Texts and JSON of the client's enums and structs.
#pragma once

#include "nlohmann/json.hpp"
#include "tokamak/types.h"

namespace tokamak::cli {

const char* Wording(ObjectState state);  // "sealed"
const char* Wording(Origin origin);      // "created here"
const char* Wording(EventKind kind);     // "deleted"
const char* Wording(NodeState state);    // "alive"

// "alive", or "suspected, seen 7 s ago".
std::string StandingOf(const ViewedNode& node);

nlohmann::json ToJson(const ObjectInfo& object);

}  // namespace tokamak::cli
