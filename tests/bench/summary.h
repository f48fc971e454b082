// Summary is what a benchmark says about one contender's measurements: where they lie and how far
// they spread.
#pragma once

#include <cstddef>
#include <vector>

namespace tokamak::bench {

struct Summary {
  size_t count = 0;
  double least = 0, p10 = 0, median = 0, p90 = 0, p99 = 0, most = 0;
};

// Takes at least one value, in its own unit.
Summary Summarise(std::vector<double> values);

}  // namespace tokamak::bench
