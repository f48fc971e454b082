// CopySpeed is the speed at which a simulated processor copies memory.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::sim {

class CopySpeed final {
 public:
  // About 10 GB/s.
  constexpr CopySpeed() = default;

  static constexpr CopySpeed Unlimited() { return CopySpeed(base::Duration()); }

  // Not 0.
  static constexpr CopySpeed BytesPerSecond(uint64_t bytes) {
    return CopySpeed(base::Duration::Picoseconds(static_cast<int64_t>(kKiB * 1'000'000'000'000 / bytes)));
  }

  // Drops fractions of a picosecond.
  constexpr base::Duration TimeOf(uint64_t bytes) const { return per_kib_ * static_cast<int64_t>(bytes) / kKiB; }

 private:
  static constexpr uint64_t kKiB = 1024;
  constexpr explicit CopySpeed(base::Duration per_kib) : per_kib_(per_kib) {}

  base::Duration per_kib_ = base::Nanoseconds(100);
};

}  // namespace tokamak::sim
