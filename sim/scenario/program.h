// The program `experiment`: runs scenarios on a simulated RoCE network, and shows what happened.
//
// It is linked once for each kind of virtual time, which changes nothing but the speed. See
// docs/simulation.md.
#pragma once

#include <cstdint>
#include <functional>

#include "lib/base/event_loop.h"

namespace tokamak::sim {

// The virtual time that a scenario happens in.
class VirtualTime {
 public:
  virtual ~VirtualTime() = default;
  virtual base::EventLoop& loop() = 0;

  // Runs events until `done`, which is asked before the first and after each, or until `limit`.
  virtual void RunUntil(const std::function<bool()>& done, base::Time limit) = 0;

  // That have run until now.
  virtual uint64_t events() const = 0;
};

// Returns the exit code, see --help.
int ExperimentProgram(int argc, char** argv, VirtualTime& time);

}  // namespace tokamak::sim
