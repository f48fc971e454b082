// Reload reads a running daemon's flags again after a change of the file (--config), and logs what
// changes.
#pragma once

#include <optional>
#include <string>

#include "lib/daemon/flags/options.h"

namespace tokamak::daemon {

class Reload final {
 public:
  // `argv` must outlive it.
  Reload(int argc, const char* const* argv, const ParsedFlags& started);

  // Returns options of which only the log's level and those of Daemon::Reload may be used; logs the
  // others each time. nullopt: wrong flags; nothing changes.
  std::optional<DaemonOptions> Read();

 private:
  const int argc_;
  const char* const* const argv_;
  const std::string started_;
  std::string last_;
};

}  // namespace tokamak::daemon
