// EndpointCounters are the numbers of one endpoint since it was opened; EndpointUse is the memory
// that it has at this moment.
#pragma once

#include <cstdint>

#include "lib/base/counter.h"
#include "lib/transport/limits.h"

namespace tokamak::transport {

// Counted on the endpoint's loop; any thread may read them while the endpoint lives.
struct EndpointCounters {
  base::Counter pulls_started, pulls_ok, pulls_failed;
  base::Counter serves_started, serves_ok, serves_failed;
  base::Counter bytes_pulled[4], bytes_served[4];  // by Protocol
  base::Counter transfers_pulled[4], transfers_served[4];
  base::Counter downgrades;     // the owner took eager though the puller asked for another protocol
  base::Counter credit_stalls;  // a message waited for the peer's slots
  base::Counter windows_grown;  // of receives, for a peer whose messages waited
  base::Counter connections_opened, connections_lost;
  base::Counter requesters_gone;     // peers that gave up while we answered their request for a queue pair
  base::Counter protocol_errors;     // protocol violations of peers; the connection is closed
  base::Counter bulk_connected;      // a connection's queue pairs on its primary rail, each time
  base::Counter bulk_rested;         // given back when nothing large was moved
  base::Counter rails_joined;        // beside the primary rail of a connection, each time
  base::Counter rails_lost;          // of these; transfers went on without them
  base::Counter windows_bound;       // memory windows, for what peers write
  base::Counter regions_registered;  // by transfers, for themselves
  // READ by pulls, and written by serves as acknowledged; what was done again counts again.
  base::Counter rail_bytes[kMaxRails];
  // Of the adaptive policy: pulls whose protocol it chose, and those of them that explored; the
  // time of those that worked, and of all that explored; how often a link had changed.
  base::Counter adaptive_pulls, adaptive_explored;
  base::Counter adaptive_nanoseconds, adaptive_explored_nanoseconds;
  base::Counter adaptive_links_changed;
  base::Counter late_messages;  // of transfers and calls that were over already: ignored
};

// What an endpoint's connections take for messages and completions.
struct EndpointUse {
  uint64_t slot_bytes = 0;        // slots that hold messages, or wait for them
  uint64_t registered_bytes = 0;  // the blocks that these are of
  uint64_t completions = 0;       // entries of completion queues that may be used
  uint64_t memory_windows = 0;    // that were made, in use or not
};

}  // namespace tokamak::transport
