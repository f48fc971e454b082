#include "tests/bench/cluster/result.h"

#include <algorithm>

#include "lib/base/check.h"

namespace tokamak::bench {

double Repetition::slowest() const { return *std::max_element(seconds.begin(), seconds.end()); }

CaseResult CaseResult::Of(const Case& what, uint32_t ranks, const std::vector<Repetition>& repetitions, Stop stop) {
  CHECK(!repetitions.empty());
  CaseResult result;
  result.what = what;
  result.repetitions = static_cast<uint32_t>(repetitions.size());
  result.stop = stop;

  std::vector<double> slowest;
  for (const Repetition& repetition : repetitions) slowest.push_back(repetition.slowest());
  std::sort(slowest.begin(), slowest.end());
  result.p10 = Quantile(slowest, 0.1);
  result.p50 = Quantile(slowest, 0.5);
  result.p90 = Quantile(slowest, 0.9);
  if (slowest.size() >= kFewestForInterval) result.interval = MedianInterval(slowest);

  std::vector<uint64_t> bytes(ranks);
  for (const Edge& edge : EdgesOf(what.pattern, ranks)) {
    bytes[edge.to] += what.size;
    result.bytes += what.size;
  }
  result.bytes_per_second = static_cast<double>(result.bytes) / result.p50;

  std::vector<double> shares;
  result.least_source = 1;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (bytes[rank] == 0) continue;
    std::vector<double> seconds, least_source;
    for (const Repetition& repetition : repetitions) {
      seconds.push_back(repetition.seconds[rank]);
      least_source.push_back(repetition.least_source[rank]);
    }
    std::sort(seconds.begin(), seconds.end());
    std::sort(least_source.begin(), least_source.end());
    shares.push_back(static_cast<double>(bytes[rank]) / Quantile(seconds, 0.5));
    result.least_source = std::min(result.least_source, Quantile(least_source, 0.5));
  }
  result.least_share = *std::min_element(shares.begin(), shares.end());
  for (const double share : shares) result.mean_share += share / static_cast<double>(shares.size());
  return result;
}

}  // namespace tokamak::bench
