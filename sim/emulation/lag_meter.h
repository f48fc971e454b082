// LagMeter remembers by how much an emulation was late: the most, and the 99th percentile, since it
// began and since it was last asked.
//
// Samples are counted in steps of an eighth of a power of two, so that a percentile is exact to
// 12.5 % (rounded up) and memory does not depend on how many there were.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::sim {

class LagMeter final {
 public:
  struct Lag {
    uint64_t samples = 0;
    base::Duration most;
    base::Duration percentile99;
  };

  // Negative lags, which clocks of different steps may show, count as none.
  void Add(base::Duration lag);

  Lag Total() const { return total_.Read(); }

  // Since the last call.
  Lag TakeRecent();

 private:
  static constexpr uint32_t kSteps = 8;  // of a power of two
  static constexpr uint32_t kBuckets = 64 * kSteps;

  struct Counts {
    std::array<uint64_t, kBuckets> buckets{};
    uint64_t samples = 0;
    base::Duration most;
    void Add(base::Duration lag);
    Lag Read() const;
  };

  static uint32_t BucketOf(uint64_t picoseconds);
  static uint64_t TopOf(uint32_t bucket);

  Counts total_;
  Counts recent_;
};

}  // namespace tokamak::sim
