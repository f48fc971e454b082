// LagMeter records an emulation's lag: maximum and 99th percentile, since its begin and since the
// last report.
//
// Steps of an eighth of a power of two: exact to 12.5 % (rounded up), in constant memory.
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

  // Counts a negative lag, of clocks with different steps, as none.
  void Add(base::Duration lag);

  Lag Total() const { return total_.Read(); }

  Lag TakeRecent();

 private:
  static constexpr uint32_t kSteps = 8;  // per power of two
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
