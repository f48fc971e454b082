// CommandLine is the parsed command line of `experiment`, and its exit codes.
#pragma once

#include <string>
#include <vector>

namespace tokamak::sim {

enum ExitCode : int {
  kDone = 0,
  kBroken = 1,  // results not written, or frames disappeared
  kWrongUse = 2,
  kFroze = 3,
  kUnfinished = 4,  // the scenario's duration ended first
  kFailed = 5,
};

struct CommandLine {
  std::string scenario;
  std::string out;
  std::vector<std::string> set;  // KEY=VALUE; in a sweep KEY=VALUE,VALUE...
  bool quiet = false;
  bool report = true;
  unsigned jobs = 0;  // 0: one per processor
};

}  // namespace tokamak::sim
