// HelpFormat is how our programs print their --help: as CLI11 has it, in lines that a terminal of
// 80 columns does not break.
//
// What an entry does stands from column 30 on (lib/cli/pages/help_text.py reads it there).
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace tokamak::daemon {

// The same text, with what entries do, and paragraphs, broken between words. Lines that begin with
// spaces and are no entries, such as commands of an example, stay as they are. Of empty lines
// behind each other one is left.
std::string WrapHelp(const std::string& text);

class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return WrapHelp(CLI::Formatter::make_help(app, std::move(name), mode));
  }
};

}  // namespace tokamak::daemon
