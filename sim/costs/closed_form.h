// The time of a pull by arithmetic: what a simulation of two hosts at one switch has to agree with.
//
// Nothing is simulated here: a pull is a chain of calls and messages, of which one waits for the
// other, so their times add up; where two of them go on at once, the slower one counts. It is
// written down in docs/simulation.md, with three values worked by hand.
//
// Counted is from the puller's wish to the word that all is in place, over a connection that is up,
// on an idle network. The network is as in docs/simulation.md: cables of one rate and delay, a
// switch that stores and forwards, lengths of packets on the wire.
#pragma once

#include <cstdint>

#include "lib/base/time.h"
#include "sim/costs/host_costs.h"

namespace tokamak::sim {

enum class PullBy : uint8_t { kEager, kRead, kWrite };

struct PullPath {
  int64_t picoseconds_per_byte = 80;             // of each cable: 100 Gb/s
  base::Duration delay = base::Microseconds(1);  // of each cable, of which there are two
  uint32_t mtu = 4096;

  // Of the transport, as lib/transport/endpoint_options.h has them.
  uint64_t slot_size = 16 * 1024;
  uint64_t chunk_size = 1024 * 1024;
  uint64_t chunks_in_flight = 8;

  // All memory was registered before, and the target of a WRITE is a window in it. Else each pull
  // registers what it needs, on both sides.
  bool arena = true;
};

// `size` bytes, at least one, of data and metadata.
base::Duration PullTime(PullBy protocol, uint64_t size, const HostCosts& costs, const PullPath& path);

}  // namespace tokamak::sim
