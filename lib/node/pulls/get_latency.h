// GetLatency counts how long gets of programs took, by the way the object came and by its size.
//
// No lock, no memory; readers take a copy. Thread rule: the control loop.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::node {

enum class Via : uint8_t {
  kLocal,    // here, or put here meanwhile
  kBrought,  // with the answer of the directory's node, or of its holder
  kEager,
  kRead,
  kWrite,
};
constexpr size_t kVias = 5;

class GetLatency final {
 public:
  // Inclusive upper bounds of the size classes, in bytes of data and metadata; the last class has
  // none.
  static constexpr std::array<uint64_t, 4> kSizeBounds = {4096, 65536, 1 << 20, 16 << 20};
  static constexpr size_t kSizes = kSizeBounds.size() + 1;

  // The time classes likewise.
  static constexpr std::array<base::Duration, 19> kTimeBounds = {
      base::Microseconds(10),   base::Microseconds(25),   base::Microseconds(50),  base::Microseconds(100),
      base::Microseconds(250),  base::Microseconds(500),  base::Milliseconds(1),   base::Microseconds(2500),
      base::Milliseconds(5),    base::Milliseconds(10),   base::Milliseconds(25),  base::Milliseconds(50),
      base::Milliseconds(100),  base::Milliseconds(250),  base::Milliseconds(500), base::Seconds(1),
      base::Milliseconds(2500), base::Milliseconds(5000), base::Seconds(10)};
  static constexpr size_t kTimes = kTimeBounds.size() + 1;

  struct Histogram {
    std::array<uint64_t, kTimes> counts{};  // by class of time
    double seconds = 0;
  };

  void Add(Via via, uint64_t size, base::Duration took) {
    Histogram& histogram = histograms_[static_cast<size_t>(via)][ClassOf(kSizeBounds, size)];
    ++histogram.counts[ClassOf(kTimeBounds, took)];
    histogram.seconds += took.seconds();
  }

  const Histogram& Of(Via via, size_t size_class) const { return histograms_[static_cast<size_t>(via)][size_class]; }

 private:
  template <typename T, size_t N>
  static size_t ClassOf(const std::array<T, N>& bounds, T value) {
    return static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin());
  }

  std::array<std::array<Histogram, kSizes>, kVias> histograms_{};
};

}  // namespace tokamak::node
