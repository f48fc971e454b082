// Counts what the program takes from the heap: linking this replaces operator new.
//
// For tests that hold a path to a bound. Memory that C libraries take from malloc is not counted.
// Thread rule: any thread; the count is the program's.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>

#include "sim/time/sim_loop.h"

namespace tokamak::support {

// Calls of operator new since the program began.
int64_t Allocations();

// Bytes that these asked for, whether or not they were given back.
int64_t AllocatedBytes();

// Lets virtual time go on until `done`. Returns the calls in tasks of `loops` alone.
int64_t AllocationsOf(std::initializer_list<const base::EventLoop*> loops, sim::Scheduler& scheduler,
                      const std::function<bool()>& done);

}  // namespace tokamak::support
