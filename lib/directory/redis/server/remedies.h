// Remedies for the errors of a Redis server.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tokamak::directory::redis {

// In one line, with the remedy if known.
std::string WithRemedy(absl::string_view error);

// Returns true if another connection may find a better server.
bool IsWrongServer(absl::string_view error);

}  // namespace tokamak::directory::redis
