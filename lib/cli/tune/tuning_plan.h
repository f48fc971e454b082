// TuningPlan decides which pulls `tok tune` measures next, and when it knows enough.
//
// First every size of a grid is pulled by every protocol, a few times; then mostly those around
// uncertain crossovers, with further sizes between. A round's pulls are in random order, to spread
// disturbances evenly. Pure: it gets the times, and never pulls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/random.h"
#include "lib/transport/object_access.h"
#include "lib/transport/policy/policy_fit.h"

namespace tokamak::cli::tune {

// Sizes of the grid and those put between.
constexpr size_t kMaxSizes = 64;

// Most pulls of one size by one protocol.
constexpr size_t kMaxSamples = 400;

// Rounds of all sizes before it looks closer: a median needs as many samples.
constexpr size_t kFullRounds = 5;

// A crossover is known well when the ends of its interval differ at most by this factor, or when
// between them the wrong protocol costs at most this part of the time.
constexpr double kKnownFactor = 1.25;
constexpr double kKnownLoss = 0.02;

// A table is known when its crossovers are, and medians are off by at most this part: else there
// may be more crossovers.
constexpr double kKnownError = 0.03;

struct Probe {
  uint64_t size = 0;
  transport::Protocol protocol = transport::Protocol::kAuto;
};

class TuningPlan final {
 public:
  // Sizes of `least`, twice that and so on up to `most`. 0 < least <= most.
  TuningPlan(uint64_t least, uint64_t most, base::Random random);

  std::vector<Probe> NextRound();
  void Note(const Probe& probe, double seconds);

  // True if every counted size was pulled kFullRounds times by every protocol.
  bool has_table() const;
  // Fits the samples so far; requires has_table().
  transport::PolicyFit Fit() const;
  // True if further rounds are needless.
  static bool IsKnown(const transport::Crossover& crossover);
  static bool IsKnown(const transport::PolicyFit& fit);

  // The samples of each counted size.
  std::vector<transport::SizeTimes> times() const;
  size_t samples() const { return samples_; }

 private:
  void AddBetween(const transport::Crossover& crossover);
  std::vector<Probe> All() const;
  std::vector<Probe> Around(const transport::PolicyFit& fit) const;
  void AddProbes(const transport::SizeTimes& times, std::vector<Probe>& probes) const;

  std::vector<transport::SizeTimes> times_;  // by rising size
  base::Random random_;
  size_t rounds_ = 0;
  size_t samples_ = 0;
};

}  // namespace tokamak::cli::tune
