// `tok bench`: how fast one program puts objects on this node and gets them there; with --between,
// how fast they move between two nodes (bench_between.h).
//
// Each object is put, got and deleted before the next. What is there when it ends, is interrupted
// or fails is deleted, too; what a killed one leaves goes with `tok rm --prefix tok-bench/`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/time.h"
#include "lib/cli/common/command.h"

namespace tokamak::cli {

struct BenchFlags {
  std::vector<uint64_t> sizes = {1 << 10, 64 << 10, 1 << 20};  // bytes
  uint64_t count = 1000;                                       // objects of each size, if there is time
  base::Duration budget = base::Seconds(5);                    // all sizes together
  std::vector<std::string> between;                            // names of nodes, or sockets of this machine
};

Command BenchCommand();

}  // namespace tokamak::cli
