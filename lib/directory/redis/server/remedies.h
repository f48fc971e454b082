// What can be done about an error of a Redis server.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tokamak::directory::redis {

// `error` in one line, and after it what to do where that is known: what a person reads.
std::string WithRemedy(absl::string_view error);

// Whether the server cannot serve us for the time being, so that another connection may find one that
// can: it is a replica, the key has moved, the password was changed.
bool IsWrongServer(absl::string_view error);

}  // namespace tokamak::directory::redis
