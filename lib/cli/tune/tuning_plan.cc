#include "lib/cli/tune/tuning_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::cli::tune {

using transport::Crossover;
using transport::kMeasuredProtocols;
using transport::PolicyFit;
using transport::SizeTimes;

namespace {

// After the first rounds every fourth is of all sizes: luck may make one fast.
constexpr size_t kRoundsForAll = 4;

// Least ratio of neighbours that get another size between.
constexpr double kClosest = 1.2;

bool Counts(const SizeTimes& times) {
  return std::all_of(times.seconds.begin(), times.seconds.end(),
                     [](const std::vector<double>& samples) { return samples.size() >= kFullRounds; });
}

}  // namespace

TuningPlan::TuningPlan(uint64_t least, uint64_t most, base::Random random) : random_(random) {
  CHECK(least > 0 && least <= most);
  for (uint64_t size = least; size <= most && times_.size() < kMaxSizes; size *= 2) {
    times_.emplace_back();
    times_.back().size = size;
    if (size > most / 2) break;
  }
}

bool TuningPlan::IsKnown(const Crossover& crossover) {
  return crossover.loss <= kKnownLoss ||
         static_cast<double>(crossover.most) <= static_cast<double>(crossover.least) * kKnownFactor;
}

bool TuningPlan::IsKnown(const PolicyFit& fit) {
  return fit.error <= kKnownError && std::all_of(fit.crossovers.begin(), fit.crossovers.end(),
                                                 [](const Crossover& crossover) { return IsKnown(crossover); });
}

// Logarithmically halfway between the neighbours.
void TuningPlan::AddBetween(const Crossover& crossover) {
  if (times_.size() >= kMaxSizes) return;
  const auto above =
      std::find_if(times_.begin(), times_.end(), [&](const SizeTimes& times) { return times.size > crossover.size; });
  if (above == times_.end() || above == times_.begin()) return;
  const auto low = static_cast<double>((above - 1)->size), high = static_cast<double>(above->size);
  if (high < low * kClosest * kClosest) return;
  SizeTimes between;
  between.size = static_cast<uint64_t>(std::sqrt(low * high));
  times_.insert(above, std::move(between));
}

void TuningPlan::AddProbes(const SizeTimes& times, std::vector<Probe>& probes) const {
  for (size_t p = 0; p < kMeasuredProtocols.size(); ++p) {
    if (times.seconds[p].size() < kMaxSamples) probes.push_back({times.size, kMeasuredProtocols[p]});
  }
}

std::vector<Probe> TuningPlan::All() const {
  std::vector<Probe> probes;
  for (const SizeTimes& times : times_) AddProbes(times, probes);
  return probes;
}

std::vector<Probe> TuningPlan::Around(const PolicyFit& fit) const {
  std::vector<Probe> probes;
  for (const SizeTimes& times : times_) {
    const bool near = std::any_of(fit.crossovers.begin(), fit.crossovers.end(), [&](const Crossover& crossover) {
      return !IsKnown(crossover) && times.size >= crossover.least / 2 && times.size / 2 <= crossover.most;
    });
    if (near || !Counts(times)) AddProbes(times, probes);
  }
  return probes;
}

std::vector<Probe> TuningPlan::NextRound() {
  std::vector<Probe> probes;
  if (++rounds_ > kFullRounds && rounds_ % kRoundsForAll != 0 && has_table()) {
    const PolicyFit fit = Fit();
    for (const Crossover& crossover : fit.crossovers) {
      if (!IsKnown(crossover)) AddBetween(crossover);
    }
    probes = Around(fit);
  }
  if (probes.empty()) probes = All();
  for (size_t i = probes.size(); i > 1; --i) std::swap(probes[i - 1], probes[random_.Below(i)]);
  return probes;
}

void TuningPlan::Note(const Probe& probe, double seconds) {
  const auto times =
      std::find_if(times_.begin(), times_.end(), [&](const SizeTimes& one) { return one.size == probe.size; });
  CHECK(times != times_.end());
  const auto* const protocol = std::find(kMeasuredProtocols.begin(), kMeasuredProtocols.end(), probe.protocol);
  CHECK(protocol != kMeasuredProtocols.end());
  times->seconds[static_cast<size_t>(protocol - kMeasuredProtocols.begin())].push_back(seconds);
  ++samples_;
}

std::vector<SizeTimes> TuningPlan::times() const {
  std::vector<SizeTimes> counted;
  std::copy_if(times_.begin(), times_.end(), std::back_inserter(counted), Counts);
  return counted;
}

bool TuningPlan::has_table() const { return std::any_of(times_.begin(), times_.end(), Counts); }

PolicyFit TuningPlan::Fit() const {
  const std::vector<SizeTimes> counted = times();
  return transport::FitPolicy(counted, random_.Fork(rounds_));
}

}  // namespace tokamak::cli::tune
