// The output of a command of the shell, for tests that ask another program (tshark, say).
#pragma once

#include <string>

namespace tokamak::support {

// Its standard output; empty where the shell could not be started.
std::string OutputOf(const std::string& command);

}  // namespace tokamak::support
