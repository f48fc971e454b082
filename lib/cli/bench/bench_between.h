// `tok bench --between`: the times to move objects one by one from this node to another and back.
//
//  to the other     an object is put here and pushed (Client::Push); the push is timed
//  from the other   an object is made there (tune/holder.h) and got here; the get is timed
//
// A program reaches only its own machine's daemon: objects are made there by this program on the
// same machine, else by `tok tune --serve`. All are deleted.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/cli/bench/bench.h"
#include "lib/cli/common/command.h"
#include "tokamak/client.h"

namespace tokamak::cli {

// `nodes`: two names, or the one beside this. `others`: clients of further nodes here.
// kInvalidArgument: neither is on this machine, or both are one. kNotFound: no such node.
absl::Status BenchBetween(const CommandContext& context, const BenchFlags& flags, std::vector<std::string> nodes,
                          std::vector<Client>& others);

}  // namespace tokamak::cli
