// Conservation: nothing disappears in a fabric. Every frame sent has arrived, was dropped and
// counted, or is still somewhere; see the laws in the headers of sim/fabric.
#pragma once

#include <string>
#include <vector>

#include "sim/fabric/switched_fabric.h"

namespace tokamak::sim {

// Returns a sentence for each place that breaks it. `at_rest`: nothing is queued or on its way, so
// buffers must be empty, too.
std::vector<std::string> FindUnaccounted(SwitchedFabric& fabric, bool at_rest);

}  // namespace tokamak::sim
