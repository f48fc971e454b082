// FitPolicy makes a table of protocols from measured times: which protocol for which size, the
// crossovers, and their certainty.
//
// The median of each size and protocol counts, so that a few late samples do not. The table is the
// cheapest sequence of protocols, where each change of protocol costs something, too, so noise
// makes no steps. Between two sizes times are taken to lie on a line. The certainty of a crossover
// comes from drawing the samples anew many times (the bootstrap). Pure functions: the same samples
// and random numbers give the same table.
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

// The protocols that can be measured.
constexpr std::array<Protocol, 3> kMeasuredProtocols = {Protocol::kEager, Protocol::kRead, Protocol::kWrite};

// Measured times of one size.
struct SizeTimes {
  uint64_t size = 0;
  std::array<std::vector<double>, 3> seconds;  // by kMeasuredProtocols; empty: this protocol is not chosen here
};

// `below` is faster up to `size`, `above` beyond.
struct Crossover {
  Protocol below = Protocol::kAuto;
  Protocol above = Protocol::kAuto;
  uint64_t size = 0;
  uint64_t least = 0, most = 0;  // its 95 % interval; an end of the measured range means that there may be no crossover
  // largest loss of time at `least` or `most` by the wrong protocol of the two, as a part
  double loss = 0;
};

struct PolicyFit {
  std::vector<Policy::Step> steps;
  std::vector<Crossover> crossovers;  // one between each two steps
  double error = 0;                   // standard error of a median, as a part of it
};

// `times`: in rising order of size, not empty, each with a measured protocol.
PolicyFit FitPolicy(absl::Span<const SizeTimes> times, base::Random random);

// `samples` must not be empty. For an even number, returns the mean of the middle two.
double Median(std::vector<double> samples);

}  // namespace tokamak::transport
