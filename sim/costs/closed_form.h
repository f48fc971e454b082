// The time of a pull by arithmetic: a simulation of two hosts at one switch has to agree with it.
//
// A pull is a chain of calls and messages: times add up, of two at once the slower counts
// (docs/simulation.md, with three values by hand).
//
// From the puller's wish to the word that all is in place, over a connection that is up, on an idle
// network: cables of one rate and delay, a store-and-forward switch, lengths on the wire.
#pragma once

#include <cstdint>

#include "lib/base/time.h"
#include "sim/costs/host_costs.h"

namespace tokamak::sim {

enum class PullBy : uint8_t { kEager, kRead, kWrite };

struct PullPath {
  int64_t picoseconds_per_byte = 80;             // of each cable: 100 Gb/s
  base::Duration delay = base::Microseconds(1);  // of each cable
  uint32_t mtu = 4096;

  // See lib/transport/endpoint_options.h.
  uint64_t slot_size = 16 * 1024;
  uint64_t chunk_size = 1024 * 1024;
  uint64_t chunks_in_flight = 8;

  // True if all memory is registered, and a WRITE's target a window in it; else each pull registers
  // its own, on both sides.
  bool arena = true;
};

// `size`: data and metadata, at least one byte.
base::Duration PullTime(PullBy protocol, uint64_t size, const HostCosts& costs, const PullPath& path);

}  // namespace tokamak::sim
