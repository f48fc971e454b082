// EndpointCounters are the numbers of one endpoint since it was opened; EndpointUse is its memory
// at this moment.
#pragma once

#include <cstdint>

#include "lib/base/counter.h"
#include "lib/transport/limits.h"
#include "lib/transport/object_access.h"

namespace tokamak::transport {

// Written on the endpoint's loop; any thread may read them.
struct EndpointCounters {
  base::Counter pulls_started, pulls_ok, pulls_failed;
  base::Counter serves_started, serves_ok, serves_failed;
  base::Counter bytes_pulled[kProtocolValues], bytes_served[kProtocolValues];  // by Protocol
  base::Counter transfers_pulled[kProtocolValues], transfers_served[kProtocolValues];
  base::Counter downgrades;     // to eager, by the owner
  base::Counter credit_stalls;  // messages that waited for the peer's slots
  base::Counter windows_grown;  // receive windows
  base::Counter connections_opened, connections_lost;
  base::Counter requesters_gone;     // gave up before our answer to their connection request
  base::Counter protocol_errors;     // of peers; the connection is closed
  base::Counter peers_proven;        // by handshakes
  base::Counter peers_refused;       // connections of who does not prove that it belongs to the cluster
  base::Counter newcomers_dropped;   // gave way to others before they had proven themselves
  base::Counter bulk_connected;      // bulk queue pairs of a primary rail
  base::Counter bulk_rested;         // of these, given back when idle
  base::Counter rails_joined;        // secondary rails
  base::Counter rails_lost;          // secondary rails; transfers went on
  base::Counter windows_bound;       // for peers' WRITEs
  base::Counter regions_registered;  // by single transfers
  // Acknowledged bytes, repeats included: READ by pulls, written by serves.
  base::Counter rail_bytes[kMaxRails];
  // Pulls whose protocol the adaptive policy chose, and explorations; nanoseconds of its successful
  // pulls, and of explorations; changes of a link.
  base::Counter adaptive_pulls, adaptive_explored;
  base::Counter adaptive_nanoseconds, adaptive_explored_nanoseconds;
  base::Counter adaptive_links_changed;
  base::Counter late_messages;  // of transfers and calls that were over
};

struct EndpointUse {
  uint64_t slot_bytes = 0;  // slots that hold messages or wait for them
  uint64_t registered_bytes = 0;
  uint64_t completions = 0;     // entries of completion queues
  uint64_t memory_windows = 0;  // in use or not
};

}  // namespace tokamak::transport
