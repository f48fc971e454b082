// ClientCounters are the connection counts of the clients' server.
#pragma once

#include <cstdint>

namespace tokamak::daemon {

// Since the start.
struct ClientCounters {
  uint64_t accepted = 0;
  uint64_t refused = 0;          // bounds of all, of the program, or of the user
  uint64_t protocol_errors = 0;  // ended by a violation
  uint64_t stalled = 0;          // ended by unread answers or an incomplete message
  uint64_t silent = 0;           // ended without a hello
};

}  // namespace tokamak::daemon
