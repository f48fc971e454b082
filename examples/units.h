// Sizes and spans of time, as flags are given and messages say them: 64MiB, 30s.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"

namespace tokamak::example {

// A tokamak::Timeout is made of it as well.
using Seconds = std::chrono::duration<double>;

// `default_text` is what --help says, for `bytes` as they are.
inline CLI::Option* AddSize(CLI::App& app, const char* flag, uint64_t& bytes, const char* help,
                            const char* default_text) {
  return app.add_option(flag, bytes, help)
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->default_str(default_text);
}

// The same for a time.
inline CLI::Option* AddTime(CLI::App& app, const char* flag, double& seconds, const char* help,
                            const char* default_text) {
  static const std::map<std::string, double> units = {{"ms", 1e-3}, {"s", 1}, {"min", 60}};
  return app.add_option(flag, seconds, help)
      ->transform(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::UNIT_REQUIRED))
      ->default_str(default_text);
}

inline std::string FormatSize(uint64_t bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  double size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 1024 && unit < 3; ++unit) size /= 1024;
  return absl::StrFormat("%.4g %s", size, units[unit]);
}

inline std::string FormatTime(Seconds time) { return absl::StrFormat("%.4g s", time.count()); }

}  // namespace tokamak::example
