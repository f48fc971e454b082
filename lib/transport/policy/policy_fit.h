// FitPolicy makes a table of protocols from measured times: which protocol for which size, the
// crossovers, and their certainty.
//
// Medians count. The table is the cheapest sequence of protocols, where a change costs something,
// so noise makes no steps; times between two sizes lie on a line. The certainty of a crossover
// comes from the bootstrap. Pure functions of samples and random numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "lib/base/random.h"
#include "lib/transport/object_access.h"
#include "lib/transport/policy/policy.h"

namespace tokamak::transport {

constexpr std::array<Protocol, 3> kMeasuredProtocols = {Protocol::kEager, Protocol::kRead, Protocol::kWrite};

struct SizeTimes {
  uint64_t size = 0;
  std::array<std::vector<double>, 3> seconds;  // by kMeasuredProtocols; empty: not chosen here
};

// `below` is faster up to `size`, `above` beyond.
struct Crossover {
  Protocol below = Protocol::kAuto;
  Protocol above = Protocol::kAuto;
  uint64_t size = 0;
  uint64_t least = 0, most = 0;  // 95 % interval; at an end of the measured range there may be no crossover
  // of time at `least` or `most` by the wrong one of the two, as a part
  double loss = 0;
};

struct PolicyFit {
  std::vector<Policy::Step> steps;
  std::vector<Crossover> crossovers;  // between steps
  double error = 0;                   // standard error of a median, as a part of it
};

// By rising size, not empty, each with a measured protocol.
PolicyFit FitPolicy(absl::Span<const SizeTimes> times, base::Random random);

// `samples` must not be empty. For an even number, returns the mean of the middle two.
double Median(std::vector<double> samples);

}  // namespace tokamak::transport
