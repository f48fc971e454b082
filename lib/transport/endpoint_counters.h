// EndpointCounters are the numbers of one endpoint since it was opened; EndpointUse is its memory
// at this moment.
#pragma once

#include <cstdint>

#include "lib/base/counter.h"
#include "lib/transport/limits.h"

namespace tokamak::transport {

// Written on the endpoint's loop; any thread may read them while the endpoint lives.
struct EndpointCounters {
  base::Counter pulls_started, pulls_ok, pulls_failed;
  base::Counter serves_started, serves_ok, serves_failed;
  base::Counter bytes_pulled[4], bytes_served[4];  // by Protocol
  base::Counter transfers_pulled[4], transfers_served[4];
  base::Counter downgrades;     // the owner chose eager, the puller had asked for another protocol
  base::Counter credit_stalls;  // a message waited for the peer's slots
  base::Counter windows_grown;  // receive windows, for peers whose messages waited
  base::Counter connections_opened, connections_lost;
  base::Counter requesters_gone;     // peers that gave up before we answered their request for a queue pair
  base::Counter protocol_errors;     // protocol violations of peers; the connection is closed
  base::Counter bulk_connected;      // bulk queue pairs of a primary rail, each time
  base::Counter bulk_rested;         // bulk queue pairs given back for lack of large transfers
  base::Counter rails_joined;        // secondary rails, each time
  base::Counter rails_lost;          // secondary rails; transfers went on without them
  base::Counter windows_bound;       // memory windows for peers' WRITEs
  base::Counter regions_registered;  // by single transfers
  // READ by pulls and written by serves, in acknowledged bytes; repeated bytes count again.
  base::Counter rail_bytes[kMaxRails];
  // Adaptive policy: pulls whose protocol it chose, and those of them that explored; the time of
  // the successful ones, and of all that explored; changes of a link.
  base::Counter adaptive_pulls, adaptive_explored;
  base::Counter adaptive_nanoseconds, adaptive_explored_nanoseconds;
  base::Counter adaptive_links_changed;
  base::Counter late_messages;  // for transfers and calls that were over: ignored
};

// Memory and completions of an endpoint's connections.
struct EndpointUse {
  uint64_t slot_bytes = 0;        // slots that hold messages or wait for them
  uint64_t registered_bytes = 0;  // blocks of these slots
  uint64_t completions = 0;       // usable entries of completion queues
  uint64_t memory_windows = 0;    // made, in use or not
};

}  // namespace tokamak::transport
