// DCQCN: a rate for each flow, cut on marks of the network and raised again step by step (Zhu et
// al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015). This is its reaction
// point.
//
// A notification sets the target rate to the current one, and cuts the current one by alpha / 2.
// Then a timer and a byte counter raise it: each time one of them comes round, the rate goes half
// of the way to its target. The first `fast_recovery` rounds keep the target; then it grows by
// `additive_increase`, and once both have come round more often than that, by `hyper_increase`. The
// limit ends at the line's rate.
//
// Timers cost no events: they are looked at on a send or notification.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/base/time.h"

namespace tokamak::verbs::soft {

class Congestion;

// Bits per second: keeps gaps between packets well below a time-out.
constexpr uint64_t kLeastLineRate = 1'000'000;

// The paper's names and values. Rates in bits per second.
struct DcqcnParameters {
  // 0: the port's rate, or 100 Gb/s, and a flow without limit leaves as fast as the port takes it.
  // Otherwise such a flow is paced by this, since a port in software does not do so itself.
  uint64_t line_rate = 0;
  uint64_t minimum_rate = 100'000'000;                  // at least kLeastLineRate
  double g = 1.0 / 256;                                 // alpha's gain
  base::Duration alpha_timer = base::Microseconds(55);  // K: alpha decays once in this time without a notification
  base::Duration rate_timer = base::Microseconds(55);   // T
  uint64_t byte_counter = 10'000'000;                   // B, bytes on the wire
  uint32_t fast_recovery = 5;                           // F
  uint64_t additive_increase = 40'000'000;              // R_AI
  uint64_t hyper_increase = 200'000'000;                // R_HAI; not in the paper
  // Time without sending that a flow may make up for, say after a late timer; 0 in virtual time.
  base::Duration catch_up;

  // For a network in real time whose links have `rate`, in bits per second: the paper's steps are a
  // thousandth of its 40 Gb/s, so these are a thousandth of `rate`. Timers may be late.
  static DcqcnParameters InRealTime(uint64_t rate);
};

// `packets`: the fixed window. The parameters' line rate, if any, overrides `line_rate`.
std::unique_ptr<Congestion> MakeDcqcn(const DcqcnParameters& parameters, uint32_t packets, uint64_t line_rate);

}  // namespace tokamak::verbs::soft
