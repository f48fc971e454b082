// When a case was repeated often enough, and what its repetitions say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tokamak::bench {

// The bounds of the median with a probability of at least 95 %, whatever the distribution: two of
// the values, by their order.
struct Interval {
  double low = 0;
  double high = 0;
};

// Fewer values than this have no such interval: even their whole range is less certain.
constexpr size_t kFewestForInterval = 6;

// Takes at least kFewestForInterval values, sorted.
Interval MedianInterval(const std::vector<double>& sorted);

// The value below which `part` of them lie; between two of them in proportion. Takes at least one
// value, sorted.
double Quantile(const std::vector<double>& sorted, double part);

enum class Stop {
  kNotYet,
  kPrecise,      // the interval is narrow enough
  kRepetitions,  // as many as are allowed
  kTime,
};

const char* ToString(Stop stop);  // "precise"

struct StopRule {
  double precision = 0.05;  // half of the interval's width, as a part of the median
  uint32_t least = 10;      // repetitions; at least kFewestForInterval
  uint32_t most = 500;      // repetitions
  double seconds = 5;       // of one case, all that goes with it included

  // After repetitions of these seconds each, in any order, and `elapsed` seconds of the case. The
  // bound of time ends a case also where there are fewer than `least`, but never before the first.
  Stop Decide(std::vector<double> values, double elapsed) const;
};

}  // namespace tokamak::bench
