// Processor time of processes, all their threads together.
#pragma once

#include <sys/types.h>

namespace tokamak::bench {

// Seconds since the process began; 0: there is no such process.
double ProcessorTimeOf(pid_t process);

}  // namespace tokamak::bench
