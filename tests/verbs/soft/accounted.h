// The law of counters.h as a sum: packets that arrived, by what became of them.
#pragma once

#include <cstdint>

#include "lib/verbs/soft/state/counters.h"

namespace tokamak::verbs::soft {

// Equals packets_received.
inline uint64_t Accounted(const QueuePairCounters& c) {
  return c.answers_taken + c.responses_lost + c.naks_received_sequence + c.naks_received_not_ready +
         c.naks_received_fatal + c.answers_stale + c.answers_bad + c.requests_executed + c.requests_duplicate +
         c.requests_out_of_order + c.requests_refused + c.requests_rejected + c.notifications_received +
         c.requests_held + c.datagrams_unreceived + c.datagrams_too_long;
}

// Equals the packets that the port handed over.
inline uint64_t Arrived(const DeviceCounters& c) {
  return c.dropped_corrupt + c.dropped_unknown_opcode + c.dropped_unknown_queue_pair + c.dropped_wrong_peer +
         c.dropped_wrong_pkey + c.dropped_wrong_qkey + c.dropped_unknown_group + c.dropped_bad_datagram +
         c.datagrams_received + c.queue_pairs.packets_received;
}

}  // namespace tokamak::verbs::soft
