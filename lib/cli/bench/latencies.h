// Latencies are durations of calls: their sum and quantiles.
#pragma once

#include <cstddef>
#include <vector>

namespace tokamak::cli {

class Latencies final {
 public:
  void Add(double seconds) { seconds_.push_back(seconds); }

  size_t count() const { return seconds_.size(); }
  double total() const;

  // Returns the least time not exceeded by at least this part of the calls, 0 to 1; 0 without
  // calls.
  double Quantile(double part) const;

 private:
  std::vector<double> seconds_;
};

}  // namespace tokamak::cli
