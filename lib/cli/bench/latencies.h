// Latencies are how long calls took: their sum and their quantiles.
#pragma once

#include <cstddef>
#include <vector>

namespace tokamak::cli {

class Latencies final {
 public:
  void Add(double seconds) { seconds_.push_back(seconds); }

  size_t count() const { return seconds_.size(); }
  double total() const;

  // The least time that at least this part of them, of 0 to 1, did not exceed; 0 where there are
  // none.
  double Quantile(double part) const;

 private:
  std::vector<double> seconds_;
};

}  // namespace tokamak::cli
