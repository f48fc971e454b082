#include "tests/bench/processor_time.h"

#include <ctime>

namespace tokamak::bench {

double ProcessorTimeOf(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace tokamak::bench
