// The users that may connect to a Unix socket, by its file's mode.
#pragma once

#include <cstdint>

namespace tokamak::os {

enum class SocketAccess : uint8_t {
  kUser,   // this user's programs: 0600
  kGroup,  // those of its group as well: 0660
};

}  // namespace tokamak::os
