// Reload reads a running daemon's flags again after a change of the file (--config), and logs what
// changes.
#pragma once

#include <optional>
#include <string>

#include "lib/daemon/flags/options.h"

namespace tokamak::daemon {

class Reload final {
 public:
  // `started`: the daemon's flags at its start; `argv` must outlive it.
  Reload(int argc, const char* const* argv, const ParsedFlags& started);

  // Returns the new options, of which only the log's level and those of Daemon::Reload may be used;
  // logs the others, which need a restart, each time. nullopt: the flags are wrong, and nothing
  // changes.
  std::optional<DaemonOptions> Read();

 private:
  const int argc_;
  const char* const* const argv_;
  const std::string started_;  // as ParsedFlags::config
  std::string last_;           // likewise; as read last
};

}  // namespace tokamak::daemon
