// FitPolicy makes a table of protocols from measured times: which protocol for which size, where
// one becomes faster than another, and how sure that is.
//
// Of each size and protocol the median counts, so that a few late ones do not. The table is the
// sequence of protocols that costs least, where each change of protocol costs something, too: so
// noise makes no steps. Between two sizes times are taken to lie on a line. How sure a crossover is
// comes from drawing the samples anew, many times (the bootstrap), and looking where it is then.
// Pure functions: the same samples and random numbers give the same table.
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

// That can be measured: eager, read and write.
constexpr std::array<Protocol, 3> kMeasuredProtocols = {Protocol::kEager, Protocol::kRead, Protocol::kWrite};

// What was measured of one size.
struct SizeTimes {
  uint64_t size = 0;
  std::array<std::vector<double>, 3> seconds;  // as kMeasuredProtocols; none: this protocol is not chosen here
};

// `below` is faster up to `size`, `above` beyond.
struct Crossover {
  Protocol below = Protocol::kAuto;
  Protocol above = Protocol::kAuto;
  uint64_t size = 0;
  uint64_t least = 0, most = 0;  // 95 of 100 times it lies between these; at the ends of what was measured: or is none
  double loss = 0;               // of time, as a part: what the wrong one of both costs at `least` or `most`, at worst
};

struct PolicyFit {
  std::vector<Policy::Step> steps;
  std::vector<Crossover> crossovers;  // one between each two steps
  double error = 0;                   // of a median, as a part of it, as a rule (its standard error)
};

// `times` in rising order of size; not empty, with some protocol measured at each.
PolicyFit FitPolicy(absl::Span<const SizeTimes> times, base::Random random);

// `samples` must not be empty. Of an even number the mean of the two in the middle.
double Median(std::vector<double> samples);

}  // namespace tokamak::transport
