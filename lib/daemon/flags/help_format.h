// HelpFormat prints --help as CLI11 does, in lines of at most 80 columns.
//
// Descriptions of entries begin at column 30 (lib/cli/pages/help_text.py relies on it).
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace tokamak::daemon {

// Returns the text with descriptions and paragraphs broken between words. Lines that begin with
// spaces and are no entries, such as example commands, stay as they are. Runs of empty lines become
// one.
std::string WrapHelp(const std::string& text);

class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return WrapHelp(CLI::Formatter::make_help(app, std::move(name), mode));
  }
};

}  // namespace tokamak::daemon
