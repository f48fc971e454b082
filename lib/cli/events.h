// `tok events`: follows what happens, one event a line: to the objects of one node, and to the
// nodes of the cluster.
#pragma once

#include <cstdint>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/cli/command.h"

namespace tokamak::cli {

struct EventsFlags {
  uint64_t count = 0;       // events, then it ends; 0: none
  base::Duration duration;  // the same; zero: none
};

void AddEvents(CLI::App& app, EventsFlags& flags);

// Begins with a line that says whom it follows: what happens from then on is seen.
absl::Status FollowEvents(const CommandContext& context, const EventsFlags& flags);

}  // namespace tokamak::cli
