// WorldOptions describe a life of a cluster: size, network, bounds and faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/base/time.h"
#include "lib/directory/directory.h"
#include "lib/node/cluster/membership.h"
#include "lib/node/engines/engine.h"
#include "lib/verbs/types.h"
#include "sim/network/network.h"
#include "sim/network/sim_network.h"

namespace tokamak::sim {

struct WorldOptions {
  uint64_t seed = 1;
  uint32_t nodes = 3;
  uint32_t ids = 6;
  uint32_t steps = 300;
  base::Duration most_between = base::Milliseconds(40);  // steps
  bool calm = false;
  base::Duration latency = base::Microseconds(2);
  int64_t picoseconds_per_byte = 80;
  bool secured = false;  // nodes prove themselves, and seal what they say

  // Small, so that a life reaches them.
  base::Duration lease = base::Milliseconds(500);
  size_t tombstones = directory::kMaxTombstones;
  size_t max_dirty = node::kMaxDirty;
  size_t words_at_once = directory::kMaxUpdates;
  size_t engine_calls = node::kMaxEngineCalls;
  base::Duration ack_timeout = verbs::ReliabilityOptions().ack_timeout;
  base::Duration grace() const { return lease * 4; }
  base::Duration directory_deadline() const { return lease / 5; }

  // Probabilities of faults, for each step.
  double freeze = 0.01;     // a node stands still for up to three leases
  double cut = 0.01;        // a node and the directory's do not reach each other
  double partition = 0.01;  // a node reaches nobody
  double crash = 0.005;     // a node loses its power, and starts again
  double directory_crash = 0.002;
  double slow = 0.03;   // a slow way between two nodes: pulls take long
  double lag = 0.03;    // a long way from one node to another: words on other ways overtake
  double mend = 0.03;   // ends cuts, partitions and slow ways
  double loss = 0.001;  // of packets

  // A bit for each trial that may run, by its place in the table (trials.h), and the probability of
  // each for each step.
  uint32_t trials = 0;
  double trial = 0.006;

  // Without a link for each pair of nodes: no slow or long ways.
  NetworkMaker network = MakeSimNetwork;

  static WorldOptions OfSeed(uint64_t seed);

  // For reports of failures.
  std::string Describe() const;
};

}  // namespace tokamak::sim
