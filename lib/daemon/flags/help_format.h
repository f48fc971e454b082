// HelpFormat prints --help as CLI11 does, in lines of at most 80 columns.
//
// Descriptions of entries begin at column 30 (lib/cli/pages/help_text.py relies on it).
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace tokamak::daemon {

// Breaks descriptions and paragraphs between words. Indented lines that are no entries, such as
// examples, stay; runs of empty lines become one.
std::string WrapHelp(const std::string& text);

class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return WrapHelp(CLI::Formatter::make_help(app, std::move(name), mode));
  }
};

}  // namespace tokamak::daemon
