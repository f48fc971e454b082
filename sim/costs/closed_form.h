// The time of a pull by arithmetic: a simulation of two hosts at one switch has to agree with it.
//
// A pull is a chain of calls and messages, each waiting for the one before, so their times add up;
// of two at once the slower one counts. docs/simulation.md has it in full, with three values worked
// by hand.
//
// The time is from the puller's wish to the word that all is in place, over a connection that is
// up, on an idle network: cables of one rate and delay, a switch that stores and forwards, lengths
// of packets on the wire.
#pragma once

#include <cstdint>

#include "lib/base/time.h"
#include "sim/costs/host_costs.h"

namespace tokamak::sim {

enum class PullBy : uint8_t { kEager, kRead, kWrite };

struct PullPath {
  int64_t picoseconds_per_byte = 80;             // of each cable: 100 Gb/s
  base::Duration delay = base::Microseconds(1);  // of each of the two cables
  uint32_t mtu = 4096;

  // Options of the transport, see lib/transport/endpoint_options.h.
  uint64_t slot_size = 16 * 1024;
  uint64_t chunk_size = 1024 * 1024;
  uint64_t chunks_in_flight = 8;

  // True if all memory was registered before, and the target of a WRITE is a window in it. Else
  // each pull registers its own memory, on both sides.
  bool arena = true;
};

// `size` is the bytes of data and metadata, at least one.
base::Duration PullTime(PullBy protocol, uint64_t size, const HostCosts& costs, const PullPath& path);

}  // namespace tokamak::sim
