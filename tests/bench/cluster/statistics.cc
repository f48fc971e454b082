#include "tests/bench/cluster/statistics.h"

#include <algorithm>
#include <cmath>

#include "lib/base/check.h"

namespace tokamak::bench {

namespace {

// The probability that the median lies beyond one end of its interval, at most.
constexpr double kTail = 0.025;

// The median lies below the i-th smallest value where fewer than i values lie below it, which has a
// binomial distribution with p = 1/2. The largest i for which that is no more probable than kTail;
// 0: there is none. Summed by logarithms, since 2^-count underflows.
size_t EndOfInterval(size_t count) {
  const double all = -static_cast<double>(count) * std::log(2.0);
  double term = 0;  // the logarithm of how many ways there are to choose i of count
  double tail = 0;  // at most i values lie below the median
  for (size_t i = 0; i < count / 2; ++i) {
    tail += std::exp(term + all);
    if (tail > kTail) return i;
    term += std::log(static_cast<double>(count - i)) - std::log(static_cast<double>(i + 1));
  }
  return count / 2;
}

}  // namespace

Interval MedianInterval(const std::vector<double>& sorted) {
  CHECK_GE(sorted.size(), kFewestForInterval);
  const size_t end = EndOfInterval(sorted.size());
  CHECK_GE(end, 1u);
  return {sorted[end - 1], sorted[sorted.size() - end]};
}

double Quantile(const std::vector<double>& sorted, double part) {
  CHECK(!sorted.empty());
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

const char* ToString(Stop stop) {
  switch (stop) {
    case Stop::kNotYet:
      return "not yet";
    case Stop::kPrecise:
      return "precise";
    case Stop::kRepetitions:
      return "repetitions";
    case Stop::kTime:
      return "time";
  }
  return "?";
}

Stop StopRule::Decide(std::vector<double> values, double elapsed) const {
  if (values.empty()) return Stop::kNotYet;
  if (values.size() >= std::max<size_t>(least, kFewestForInterval)) {
    std::sort(values.begin(), values.end());
    const Interval interval = MedianInterval(values);
    if ((interval.high - interval.low) / 2 <= precision * Quantile(values, 0.5)) return Stop::kPrecise;
  }
  if (values.size() >= most) return Stop::kRepetitions;
  return elapsed >= seconds ? Stop::kTime : Stop::kNotYet;
}

}  // namespace tokamak::bench
