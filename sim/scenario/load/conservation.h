// Conservation: nothing disappears in a fabric. Whatever was sent has arrived, was dropped and
// counted, or is still somewhere; see the laws in the headers of sim/fabric.
#pragma once

#include <string>
#include <vector>

#include "sim/fabric/switched_fabric.h"

namespace tokamak::sim {

// Where that is not so, a sentence for each place. `at_rest`: nothing is queued or on its way, so
// buffers must be empty, too.
std::vector<std::string> FindUnaccounted(SwitchedFabric& fabric, bool at_rest);

}  // namespace tokamak::sim
