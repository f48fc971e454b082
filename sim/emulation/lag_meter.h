// LagMeter records by how much an emulation was late: the most, and the 99th percentile, since it
// began and since the last report.
//
// Samples are counted in steps of an eighth of a power of two, so a percentile is exact to 12.5 %
// (rounded up) and memory does not depend on their number.
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

  // Counts a negative lag, which clocks of different steps may show, as none.
  void Add(base::Duration lag);

  Lag Total() const { return total_.Read(); }

  // Returns the lag since the last call.
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
