#include "lib/cli/bench/timed_calls.h"

#include "lib/base/units.h"

namespace tokamak::cli {

double TimedCalls::per_second() const {
  const double total = latencies.total();
  return total > 0 ? static_cast<double>(latencies.count()) / total : 0;
}

double TimedCalls::bytes_per_second() const { return static_cast<double>(size) * per_second(); }

std::string TimedCalls::Time(double quantile) const {
  return base::FormatDuration(base::Duration::Picoseconds(static_cast<int64_t>(latencies.Quantile(quantile) * 1e12)));
}

std::string TimedCalls::Rate() const { return base::FormatSize(static_cast<uint64_t>(bytes_per_second())); }

nlohmann::json TimedCalls::ToJson() const {
  return {{"p50_seconds", latencies.Quantile(0.5)},
          {"p90_seconds", latencies.Quantile(0.9)},
          {"p99_seconds", latencies.Quantile(0.99)},
          {"max_seconds", latencies.Quantile(1)},
          {"per_second", per_second()},
          {"bytes_per_second", bytes_per_second()}};
}

}  // namespace tokamak::cli
