// `tok bench`: the speed of one program's puts and gets on this node, or, with --between, between
// two nodes (bench_between.h).
//
// Each object is put, got and deleted before the next, also on interruption or failure; those of a
// killed run go with `tok rm --prefix tok-bench/`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/time.h"
#include "lib/cli/common/command.h"

namespace tokamak::cli {

struct BenchFlags {
  std::vector<uint64_t> sizes = {1 << 10, 64 << 10, 1 << 20};  // bytes
  uint64_t count = 1000;                                       // objects of each size, within the budget
  base::Duration budget = base::Seconds(5);                    // of all sizes together
  std::vector<std::string> between;                            // node names, or sockets of this machine
};

Command BenchCommand();

}  // namespace tokamak::cli
