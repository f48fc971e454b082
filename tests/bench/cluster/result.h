// CaseResult is what one case gave, the same on every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/bench/cluster/plan.h"
#include "tests/bench/cluster/statistics.h"

namespace tokamak::bench {

// One repetition, by rank.
struct Repetition {
  std::vector<double> seconds;  // from the start to the rank's last object; 0 where it gets none
  // Of what each source's object came at, bytes per second from the start on: the least, as a part
  // of the mean. 1 where a rank gets one object or none.
  std::vector<double> least_source;

  // Until the last rank has everything.
  double slowest() const;
};

struct CaseResult {
  Case what;
  uint32_t repetitions = 0;
  Stop stop = Stop::kNotYet;
  double p10 = 0, p50 = 0, p90 = 0;  // seconds of a repetition's slowest rank
  std::optional<Interval> interval;  // of the median; none with fewer than kFewestForInterval
  uint64_t bytes = 0;                // of one repetition, all ranks together
  double bytes_per_second = 0;       // of all ranks together, at the median
  // Of the ranks that get something, each with what it got by its own median.
  double least_share = 0;  // bytes per second
  double mean_share = 0;
  double least_source = 0;  // of the rank where that is the least, by its own median

  // Takes at least one repetition.
  static CaseResult Of(const Case& what, uint32_t ranks, const std::vector<Repetition>& repetitions, Stop stop);
};

}  // namespace tokamak::bench
