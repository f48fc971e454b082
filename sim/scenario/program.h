// The program `experiment`: runs scenarios on a simulated RoCE network, and reports on them.
//
// It is linked once for each kind of virtual time, which changes only the speed. See
// docs/simulation.md.
#pragma once

#include "sim/time/virtual_time.h"

namespace tokamak::sim {

// Returns the exit code, see --help.
int ExperimentProgram(int argc, char** argv, VirtualTime& time);

}  // namespace tokamak::sim
