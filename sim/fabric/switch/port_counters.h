// PortCounters are what a port counted, for each of its priorities.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/time.h"
#include "sim/fabric/link/observer.h"
#include "sim/fabric/link/pause_frame.h"

namespace tokamak::sim {

// In frames unless stated otherwise; without pause frames.
struct PriorityCounters {
  uint64_t received = 0;
  uint64_t received_bytes = 0;
  uint64_t sent = 0;
  uint64_t sent_bytes = 0;
  uint64_t most_queued = 0;  // bytes
  uint64_t marked = 0;
  uint64_t dropped = 0;          // to leave by this port, or come by it and without a way
  uint64_t pauses_sent = 0;      // stops asked of the neighbour
  uint64_t pauses_received = 0;  // without prolongations
  base::Duration paused;         // in all; see EgressPort::counters
  uint64_t storms = 0;           // found by the watchdog
};

struct PortCounters {
  std::array<PriorityCounters, kPriorities> priorities;
  std::array<uint64_t, kDropReasons> drops{};
};

}  // namespace tokamak::sim
