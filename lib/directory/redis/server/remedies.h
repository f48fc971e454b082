// Remedies for the errors of a Redis server.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tokamak::directory::redis {

// Returns `error` in one line, with its remedy if one is known, for people.
std::string WithRemedy(absl::string_view error);

// Returns true if the server cannot serve us for the time being and another connection may find a
// better one: it is a replica, the key has moved, the password was changed.
bool IsWrongServer(absl::string_view error);

}  // namespace tokamak::directory::redis
