// ClientCounters is what the clients' server counts of connections.
#pragma once

#include <cstdint>

namespace tokamak::daemon {

// Totals since the server began.
struct ClientCounters {
  uint64_t accepted = 0;
  uint64_t refused = 0;          // too many were connected, or too many of that program or user
  uint64_t protocol_errors = 0;  // connections that ended since the client broke the protocol
  uint64_t stalled = 0;          // since it did not take its answers, or did not complete its messages
  uint64_t silent = 0;           // since it said no hello
};

}  // namespace tokamak::daemon
