// `tok bench`: how fast one program puts objects on this node and gets them there; with --between,
// how fast they move between two nodes (bench_between.h).
//
// Each object is put, got and deleted before the next. The objects are deleted also after an
// interruption or failure; those of a killed run with `tok rm --prefix tok-bench/`.
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
  base::Duration budget = base::Seconds(5);                    // all sizes together
  std::vector<std::string> between;                            // names of nodes, or sockets of this machine
};

Command BenchCommand();

}  // namespace tokamak::cli
