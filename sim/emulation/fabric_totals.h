// FabricTotals sums up the counters of all cables and switches of a fabric.
#pragma once

#include <cstdint>

#include "sim/fabric/switched_fabric.h"

namespace tokamak::sim {

struct FabricTotals {
  uint64_t marked = 0;
  uint64_t lost = 0;       // on cables, by loss models
  uint64_t corrupted = 0;  // likewise
  uint64_t dropped = 0;    // by switches and hosts, and by cables that are down
  uint64_t pauses = 0;     // times that a neighbour was stopped

  static FabricTotals Of(SwitchedFabric& fabric);
};

}  // namespace tokamak::sim
