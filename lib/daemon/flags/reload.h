// Reload reads a running daemon's flags again, of which the file (--config) may have changed, and
// says in the log what that changes.
#pragma once

#include <optional>
#include <string>

#include "lib/daemon/flags/options.h"

namespace tokamak::daemon {

class Reload final {
 public:
  // With what the daemon was started; `argv` must outlive it.
  Reload(int argc, const char* const* argv, const ParsedFlags& started);

  // Of what it returns only what Daemon::Reload takes over, and the log's level, may be used: a
  // restart is needed for the rest, which is named each time. None where something is wrong with the
  // flags: nothing changes then.
  std::optional<DaemonOptions> Read();

 private:
  const int argc_;
  const char* const* const argv_;
  const std::string started_;  // as ParsedFlags::config
  std::string last_;           // likewise; of what was read last
};

}  // namespace tokamak::daemon
