// TuningPlan decides which pulls `tok tune` measures next, and when it knows enough.
//
// First every size of a grid is pulled by every protocol, a few times; then mostly those around a
// crossover that is not known well, where further sizes are put between. Within a round the pulls
// are in random order, so that what else the machine does falls on all alike.
// Pure: it is told what a pull took, and never pulls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/random.h"
#include "lib/transport/object_access.h"
#include "lib/transport/policy/policy_fit.h"

namespace tokamak::cli::tune {

// Sizes of the grid, with those that were put between.
constexpr size_t kMaxSizes = 64;

// Pulls of one size by one protocol; then it is known.
constexpr size_t kMaxSamples = 400;

// Rounds of all sizes before it looks closer; fewer samples make no median.
constexpr size_t kFullRounds = 5;

// A crossover is known well when the ends of its interval differ by this factor at most, or when
// between them the wrong protocol costs at most this part of the time.
constexpr double kKnownFactor = 1.25;
constexpr double kKnownLoss = 0.02;

// A table is known when its crossovers are, and medians are off by this part at most: else there
// may be more of them.
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

  // Every size that counts was pulled kFullRounds times by every protocol.
  bool has_table() const;
  // By what was noted so far; only where has_table().
  transport::PolicyFit Fit() const;
  // That makes further rounds needless.
  static bool IsKnown(const transport::Crossover& crossover);
  static bool IsKnown(const transport::PolicyFit& fit);

  // With what was measured of each that counts.
  std::vector<transport::SizeTimes> times() const;
  size_t samples() const { return samples_; }

 private:
  void AddBetween(const transport::Crossover& crossover);
  std::vector<Probe> All() const;
  std::vector<Probe> Around(const transport::PolicyFit& fit) const;
  void AddProbes(const transport::SizeTimes& times, std::vector<Probe>& probes) const;

  std::vector<transport::SizeTimes> times_;  // in rising order of size
  base::Random random_;
  size_t rounds_ = 0;
  size_t samples_ = 0;
};

}  // namespace tokamak::cli::tune
