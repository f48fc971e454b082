// The name of this machine.
#pragma once

#include <string>

namespace tokamak::os {

// Returns the kernel's name, mostly without its domain; empty if it has none.
std::string HostName();

// Returns the name with its domain, from the resolver (`hostname -f`); empty if it knows none. May
// take seconds.
std::string WholeHostName();

}  // namespace tokamak::os
