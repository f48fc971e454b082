#include "tests/bench/summary.h"

#include <algorithm>

#include "lib/base/check.h"

namespace tokamak::bench {

Summary Summarise(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {values.size(), values.front(), at(0.1), at(0.5), at(0.9), at(0.99), values.back()};
}

}  // namespace tokamak::bench
