// The name of this machine.
#pragma once

#include <string>

namespace tokamak::os {

// As the kernel has it, mostly without its domain; empty where it has none.
std::string HostName();

// With its domain, as the system's resolver has it (`hostname -f`); empty where that does not know.
// May take seconds where DNS is asked.
std::string WholeHostName();

}  // namespace tokamak::os
