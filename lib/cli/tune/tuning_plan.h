// TuningPlan decides which pulls `tok tune` measures next, and when it knows enough.
//
// First a grid of sizes by every protocol, a few times; then mostly around uncertain crossovers,
// with sizes between. Random order within a round spreads disturbances. Pure: it gets the times,
// and never pulls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/random.h"
#include "lib/transport/object_access.h"
#include "lib/transport/policy/policy_fit.h"

namespace tokamak::cli::tune {

// Grid and between.
constexpr size_t kMaxSizes = 64;

// Pulls of one size by one protocol.
constexpr size_t kMaxSamples = 400;

// Full rounds before looking closer: the samples of a median.
constexpr size_t kFullRounds = 5;

// A crossover is known when its interval's ends differ by at most this factor, or the wrong
// protocol between them costs at most this part.
constexpr double kKnownFactor = 1.25;
constexpr double kKnownLoss = 0.02;

// A table is known when its crossovers are, and its medians to this part: else more may hide.
constexpr double kKnownError = 0.03;

struct Probe {
  uint64_t size = 0;
  transport::Protocol protocol = transport::Protocol::kAuto;
};

class TuningPlan final {
 public:
  // Sizes `least`, doubled up to `most`. 0 < least <= most.
  TuningPlan(uint64_t least, uint64_t most, base::Random random);

  std::vector<Probe> NextRound();
  void Note(const Probe& probe, double seconds);

  // kFullRounds of every counted size and protocol.
  bool has_table() const;
  // Requires has_table().
  transport::PolicyFit Fit() const;
  // True if no round is needed.
  static bool IsKnown(const transport::Crossover& crossover);
  static bool IsKnown(const transport::PolicyFit& fit);

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
