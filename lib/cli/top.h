// `tok top`: the nodes of the cluster as they are now, again and again: memory, objects, transfers,
// state. Whichever node is asked shows them all.
//
// On a terminal each view takes the place of the one before, keys scroll, and q ends; elsewhere views
// follow each other.
#pragma once

#include <cstdint>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/cli/command.h"

namespace tokamak::cli {

struct TopFlags {
  uint64_t count = 0;  // views, then it ends; 0: none
  base::Duration interval = base::Seconds(1);
};

void AddTop(CLI::App& app, TopFlags& flags);

absl::Status Top(const CommandContext& context, const TopFlags& flags);

}  // namespace tokamak::cli
