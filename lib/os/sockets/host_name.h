// The name of this machine.
#pragma once

#include <string>

namespace tokamak::os {

// Returns it mostly without its domain; empty if there is none.
std::string HostName();

// Returns it with its domain, by the resolver (`hostname -f`); empty if unknown. May take seconds.
std::string WholeHostName();

}  // namespace tokamak::os
