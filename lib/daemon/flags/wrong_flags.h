// Explains in one line a command line that CLI11 refused, with what may have been meant.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace tokamak::daemon {

// `error`: thrown by `app` in parsing.
std::string ExplainWrongFlags(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tokamak::daemon
