// What is wrong with a command line that CLI11 did not take: in one line, with what may have been
// meant.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace tokamak::daemon {

// Of what `app` threw when it parsed. Ends with where the help is.
std::string ExplainWrongFlags(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tokamak::daemon
