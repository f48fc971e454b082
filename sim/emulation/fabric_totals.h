// FabricTotals sums up the counters of all cables and switches of a fabric.
#pragma once

#include <cstdint>

#include "sim/fabric/switched_fabric.h"

namespace tokamak::sim {

struct FabricTotals {
  uint64_t marked = 0;
  uint64_t lost = 0;       // on cables, by their loss models
  uint64_t corrupted = 0;  // on cables, by their loss models
  uint64_t dropped = 0;    // by switches and hosts, for any reason, and by cables that are down
  uint64_t pauses = 0;     // times that a neighbour was asked to stop

  static FabricTotals Of(SwitchedFabric& fabric);
};

}  // namespace tokamak::sim
