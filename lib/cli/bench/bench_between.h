// `tok bench --between`: what it takes to move objects from this node to another one and from there
// to here, one after the other.
//
//   to the other     an object is put here and pushed (Client::Push); the push is timed
//   from the other   an object is made there (tune/holder.h) and got here; the get is timed
//
// A program reaches the daemon of its own machine alone, so the other node is asked through the
// cluster. Nothing has to run there for what goes to it; what comes from it has to be put there, by
// this program where it is on the same machine, and by `tok tune --serve` where it is not.
// What is there when it ends, is interrupted or fails is deleted, as with every `tok bench`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/cli/bench/bench.h"
#include "lib/cli/common/command.h"
#include "tokamak/client.h"

namespace tokamak::cli {

// `nodes`: the names of two, or of the other one beside this. `others`: of further nodes on this
// machine. kInvalidArgument: neither node is on this machine, or both are one; kNotFound: there is
// no such node.
absl::Status BenchBetween(const CommandContext& context, const BenchFlags& flags, std::vector<std::string> nodes,
                          std::vector<Client>& others);

}  // namespace tokamak::cli
