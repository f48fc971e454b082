// CommandLine is the parsed command line of `experiment`, and its exit codes.
#pragma once

#include <string>
#include <vector>

namespace tokamak::sim {

enum ExitCode : int {
  kDone = 0,
  kBroken = 1,      // results could not be written, or something disappeared: see the messages
  kWrongUse = 2,    // the command line, or the scenario
  kFroze = 3,       // a frozen network
  kUnfinished = 4,  // the scenario's duration was over first
  kFailed = 5,      // transfers failed
};

struct CommandLine {
  std::string scenario;
  std::string out;
  std::vector<std::string> set;  // KEY=VALUE; for a sweep KEY=VALUE,VALUE...
  bool quiet = false;
  bool report = true;
  unsigned jobs = 0;  // of a sweep; 0: the number of processors
};

}  // namespace tokamak::sim
