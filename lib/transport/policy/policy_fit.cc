#include "lib/transport/policy/policy_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::transport {
namespace {

constexpr size_t kProtocols = kMeasuredProtocols.size();

// Least gain of a change of protocol, as a part of one size's time; or in typical errors of the
// medians.
constexpr double kChange = 0.05;
constexpr double kChangeByNoise = 10;

// Standard error of a median in median deviations over the square root of the samples, for a normal
// distribution.
constexpr double kErrorOfDeviation = 1.86;

// For a protocol not measured at a size.
constexpr double kNotMeasured = 1e6;

constexpr int kDraws = 200;

using Medians = std::vector<std::array<double, kProtocols>>;  // by size

double MedianOf(const std::vector<double>& samples) { return samples.empty() ? kNotMeasured : Median(samples); }

Medians MediansOf(absl::Span<const SizeTimes> times) {
  Medians medians(times.size());
  for (size_t i = 0; i < times.size(); ++i) {
    for (size_t p = 0; p < kProtocols; ++p) medians[i][p] = MedianOf(times[i].seconds[p]);
  }
  return medians;
}

// Returns the excess over the fastest, as a part.
double Loss(const Medians& medians, size_t i, size_t p) {
  const double best = *std::min_element(medians[i].begin(), medians[i].end());
  return medians[i][p] / best - 1;
}

double ErrorOf(absl::Span<const SizeTimes> times, const Medians& medians) {
  std::vector<double> errors;
  for (size_t i = 0; i < times.size(); ++i) {
    for (size_t p = 0; p < kProtocols; ++p) {
      std::vector<double> deviations = times[i].seconds[p];
      if (deviations.empty()) continue;
      for (double& one : deviations) one = std::abs(one / medians[i][p] - 1);
      const double count = static_cast<double>(deviations.size());
      errors.push_back(kErrorOfDeviation * Median(std::move(deviations)) / std::sqrt(count));
    }
  }
  return Median(std::move(errors));
}

// Returns the cheapest protocols by size.
std::vector<size_t> BestSequence(const Medians& medians, double change) {
  std::vector<std::array<size_t, kProtocols>> from(medians.size());
  std::array<double, kProtocols> cost{};
  for (size_t i = 0; i < medians.size(); ++i) {
    const size_t cheapest = static_cast<size_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
    std::array<double, kProtocols> next{};
    for (size_t p = 0; p < kProtocols; ++p) {
      from[i][p] = cost[p] <= cost[cheapest] + change ? p : cheapest;
      next[p] = cost[from[i][p]] + (from[i][p] == p ? 0 : change) + Loss(medians, i, p);
    }
    cost = next;
  }
  std::vector<size_t> sequence(medians.size());
  size_t p = static_cast<size_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
  for (size_t i = medians.size(); i-- > 0;) {
    sequence[i] = p;
    p = from[i][p];
  }
  return sequence;
}

// Returns where lines through the times of sizes i and i + 1 meet; `below` is faster at i.
double Crossing(absl::Span<const SizeTimes> times, const Medians& medians, size_t i, size_t below, size_t above) {
  const double at = medians[i][above] - medians[i][below];
  const double after = medians[i + 1][below] - medians[i + 1][above];
  const auto size = static_cast<double>(times[i].size), next = static_cast<double>(times[i + 1].size);
  const double sum = at + after;
  const double part = sum > 0 ? std::clamp(at / sum, 0.0, 1.0) : 0.5;
  return size + part * (next - size);
}

// Sizes between which `below` gives way to `above` once.
struct Range {
  size_t first, last;
  size_t below, above;
};

// Returns where the change costs least; the first or last size if one protocol alone costs less.
double BestCrossing(absl::Span<const SizeTimes> times, const Medians& medians, const Range& range, double change) {
  const auto loss = [&](size_t i, size_t p, size_t other) {
    return std::max(0.0, medians[i][p] / medians[i][other] - 1);
  };
  double cost = 0;  // with `above` everywhere
  for (size_t i = range.first; i <= range.last; ++i) cost += loss(i, range.above, range.below);
  double least = cost;
  size_t split = range.first;  // first size with `above`
  for (size_t i = range.first; i <= range.last; ++i) {
    cost += loss(i, range.below, range.above) - loss(i, range.above, range.below);
    const double with_change = cost + (i < range.last ? change : 0);
    if (with_change >= least) continue;
    least = with_change;
    split = i + 1;
  }
  if (split == range.first) return static_cast<double>(times[range.first].size);
  if (split > range.last) return static_cast<double>(times[range.last].size);
  return Crossing(times, medians, split - 1, range.below, range.above);
}

std::vector<double> DrawAgain(const std::vector<double>& samples, base::Random& random) {
  std::vector<double> drawn(samples.size());
  for (double& one : drawn) one = samples[random.Below(samples.size())];
  return drawn;
}

double TimeAt(absl::Span<const SizeTimes> times, const Medians& medians, size_t p, double size) {
  size_t i = 0;
  while (i + 2 < times.size() && static_cast<double>(times[i + 1].size) < size) ++i;
  if (i + 1 == times.size()) return medians[i][p];
  const auto from = static_cast<double>(times[i].size), to = static_cast<double>(times[i + 1].size);
  return medians[i][p] + (size - from) / (to - from) * (medians[i + 1][p] - medians[i][p]);
}

Crossover Judge(absl::Span<const SizeTimes> times, const Medians& medians, const Range& range, double size,
                double change, base::Random& random) {
  std::vector<double> found;
  Medians drawn = medians;
  for (int draw = 0; draw < kDraws; ++draw) {
    for (size_t i = range.first; i <= range.last; ++i) {
      for (const size_t p : {range.below, range.above}) {
        if (!times[i].seconds[p].empty()) drawn[i][p] = Median(DrawAgain(times[i].seconds[p], random));
      }
    }
    found.push_back(BestCrossing(times, drawn, range, change));
  }
  std::sort(found.begin(), found.end());
  const double least = std::min(size, found[kDraws / 40]);
  const double most = std::max(size, found[kDraws - 1 - kDraws / 40]);
  Crossover crossover;
  crossover.below = kMeasuredProtocols[range.below];
  crossover.above = kMeasuredProtocols[range.above];
  crossover.size = static_cast<uint64_t>(size);
  crossover.least = static_cast<uint64_t>(least);
  crossover.most = static_cast<uint64_t>(most);
  for (const double end : {least, most}) {
    const double below = TimeAt(times, medians, range.below, end), above = TimeAt(times, medians, range.above, end);
    crossover.loss = std::max(crossover.loss, std::abs(below - above) / std::min(below, above));
  }
  return crossover;
}

}  // namespace

double Median(std::vector<double> samples) {
  CHECK(!samples.empty());
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(samples.begin(), middle)) / 2;
}

PolicyFit FitPolicy(absl::Span<const SizeTimes> times, base::Random random) {
  CHECK(!times.empty());
  const Medians medians = MediansOf(times);
  const double error = ErrorOf(times, medians);
  const double change = kChange + kChangeByNoise * error;
  const std::vector<size_t> sequence = BestSequence(medians, change);
  std::vector<size_t> starts = {0};  // of the steps
  for (size_t i = 1; i < sequence.size(); ++i) {
    if (sequence[i] != sequence[i - 1]) starts.push_back(i);
  }
  PolicyFit fit;
  fit.error = error;
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    const size_t end = s + 2 < starts.size() ? starts[s + 2] : sequence.size();
    const size_t begins = starts[s + 1];
    const Range range{starts[s], end - 1, sequence[begins - 1], sequence[begins]};
    double size = Crossing(times, medians, begins - 1, range.below, range.above);
    if (!fit.steps.empty()) size = std::max(size, static_cast<double>(fit.steps.back().size_at_most + 1));
    fit.crossovers.push_back(Judge(times, medians, range, size, change, random));
    fit.steps.push_back({fit.crossovers.back().size, fit.crossovers.back().below});
  }
  fit.steps.push_back({UINT64_MAX, kMeasuredProtocols[sequence.back()]});
  return fit;
}

}  // namespace tokamak::transport
