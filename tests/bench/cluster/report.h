// Report is what rank 0 makes of a run's results: a table for people, CSV and JSON for programs.
//
// Results stand in the order of pattern, size and contender, in whichever order they were measured.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/bench/cluster/plan.h"
#include "tests/bench/cluster/result.h"
#include "tests/bench/cluster/settings.h"

namespace tokamak::bench {

// The place and the settings of a run.
struct RunInfo {
  uint32_t ranks = 0;
  uint32_t hosts = 1;
  std::string machine;  // rank 0's
  std::string kernel;
  std::string command;
};

class Report final {
 public:
  Report(RunInfo run, std::vector<Contender> contenders, std::vector<CaseResult> results);

  // A line for each result, and one for each of `run` before them.
  std::string Table() const;
  // RFC 4180, with a line of names; what `run` says stands in each row.
  std::string Csv() const;
  // An object: "run", "settings", "results".
  std::string Json(const Settings& settings) const;

  // The table to `out`, and the rest to the files that --csv and --json name. kUnavailable: a file
  // cannot be written.
  absl::Status Tell(std::ostream& out, const Settings& settings) const;

  // One line on one result, for progress.
  static std::string Line(const CaseResult& result, const Contender& contender);

 private:
  const RunInfo run_;
  const std::vector<Contender> contenders_;
  std::vector<CaseResult> results_;
};

// This machine's processors and memory, such as "2 x Intel Xeon, 24 GiB"; its kernel.
std::string DescribeMachine();
std::string DescribeKernel();

}  // namespace tokamak::bench
