#include "lib/cli/bench/latencies.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace tokamak::cli {

double Latencies::total() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }

double Latencies::Quantile(double part) const {
  if (seconds_.empty()) return 0;
  std::vector<double> sorted = seconds_;
  const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  const size_t index = std::clamp<size_t>(rank, 1, sorted.size()) - 1;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<int64_t>(index), sorted.end());
  return sorted[index];
}

}  // namespace tokamak::cli
