// ClientCounters are the connection counts of the clients' server.
#pragma once

#include <cstdint>

namespace tokamak::daemon {

// Totals since the server began.
struct ClientCounters {
  uint64_t accepted = 0;
  uint64_t refused = 0;          // too many connected, or too many of the program or user
  uint64_t protocol_errors = 0;  // ended for a protocol violation of the client
  uint64_t stalled = 0;          // ended for unread answers or an incomplete message
  uint64_t silent = 0;           // ended without a hello
};

}  // namespace tokamak::daemon
