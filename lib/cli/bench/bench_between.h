// `tok bench --between`: the times to move objects from this node to another one and back, one
// after the other.
//
//  to the other     an object is put here and pushed (Client::Push); the push is timed
//  from the other   an object is made there (tune/holder.h) and got here; the get is timed
//
// A program reaches only the daemon of its own machine, so the other node is asked through the
// cluster. Objects for it need no program there; objects from it are put there by this program if
// on the same machine, else by `tok tune --serve`. All are deleted as in every `tok bench`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/cli/bench/bench.h"
#include "lib/cli/common/command.h"
#include "tokamak/client.h"

namespace tokamak::cli {

// `nodes`: the names of two, or of the other one beside this. `others`: clients of further nodes on
// this machine. kInvalidArgument: neither node is on this machine, or both are one. kNotFound:
// there is no such node.
absl::Status BenchBetween(const CommandContext& context, const BenchFlags& flags, std::vector<std::string> nodes,
                          std::vector<Client>& others);

}  // namespace tokamak::cli
