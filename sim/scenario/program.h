// The program `experiment`: runs scenarios on a simulated RoCE network, and reports on them
// (docs/simulation.md).
//
// Linked once for each virtual time, which changes only the speed.
#pragma once

#include "sim/time/virtual_time.h"

namespace tokamak::sim {

// Returns the exit code, see --help.
int ExperimentProgram(int argc, char** argv, VirtualTime& time);

}  // namespace tokamak::sim
