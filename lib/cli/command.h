// What the commands of tok share: whom they talk to, and flags that are read as more than text.
//
// A command is a struct of its flags, an Add function that enters it into the one table of commands
// (command_line.h), and a function that runs it. Each prints for people, or JSON.
#pragma once

#include <cstdint>
#include <string>

#include "CLI/CLI.hpp"
#include "lib/base/time.h"
#include "lib/cli/undo.h"
#include "tokamak/client.h"

namespace tokamak::cli {

struct CommandContext {
  Client& client;
  Undo& undo;
  bool json = false;
};

// A command whose help ends with an example. `about` is one line.
CLI::App* NewCommand(CLI::App& app, const std::string& name, const std::string& about, const std::string& example);

// A flag for a span of time, such as 250ms; what `value` is now is said to be its default.
CLI::Option* AddDuration(CLI::App& command, const std::string& names, base::Duration& value, const std::string& about);

// Of a number that counts something.
CLI::Validator AtLeastOne();

// Of a node of the cluster that tok up starts, by its number or its name, which becomes its number.
CLI::Validator NumberOfNode();

// A flag for bytes, such as 64KiB.
CLI::Option* AddSize(CLI::App& command, const std::string& names, uint64_t& value, const std::string& about);

}  // namespace tokamak::cli
