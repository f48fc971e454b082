// Conservation: nothing disappears in a fabric. Every frame sent has arrived, was dropped and
// counted, or is still somewhere (laws: headers of sim/fabric).
#pragma once

#include <string>
#include <vector>

#include "sim/fabric/switched_fabric.h"

namespace tokamak::sim {

// Returns a sentence per breach. `at_rest`: nothing queued or on its way, so buffers are empty,
// too.
std::vector<std::string> FindUnaccounted(SwitchedFabric& fabric, bool at_rest);

}  // namespace tokamak::sim
