// `tok wait`: waits until objects exist, on any node, or on this one. Nothing is moved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/cli/command.h"

namespace tokamak::cli {

struct WaitFlags {
  std::vector<std::string> names;
  uint32_t count = 0;  // this many are enough; 0: all
  base::Duration timeout = base::Seconds(30);
  bool here = false;
};

void AddWait(CLI::App& app, WaitFlags& flags);

// Prints which exist. kDeadlineExceeded: too few do, and which are missing.
absl::Status Wait(const CommandContext& context, const WaitFlags& flags);

}  // namespace tokamak::cli
