// Rate is a wire's speed, kept as time per byte, so no division is made for a frame.
//
// Exact if a byte takes whole picoseconds, as at 10, 25, 40, 50, 100, 200, 400 and 800 Gb/s; else
// to a picosecond for each frame.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/time.h"

namespace tokamak::sim {

class Rate final {
 public:
  static constexpr uint64_t kLeast = 1'000'000;         // 1 Mb/s
  static constexpr uint64_t kMost = 8'000'000'000'000;  // 8 Tb/s: a picosecond for a byte

  // `bits`: from kLeast to kMost.
  static constexpr Rate BitsPerSecond(uint64_t bits) { return Rate(bits); }
  static constexpr Rate Gigabits(uint64_t n) { return Rate(n * 1'000'000'000); }

  // Parses "100Gb/s", "2.5 Gb/s", "200Mb/s". kInvalidArgument names the remedy.
  static absl::StatusOr<Rate> Parse(absl::string_view text);
  std::string ToString() const;  // "100 Gb/s"

  constexpr uint64_t bits_per_second() const { return bits_per_second_; }

  // `bytes`: 16 MiB at most.
  constexpr base::Duration TimeOf(uint32_t bytes) const {
    return base::Duration::Picoseconds(static_cast<int64_t>((bytes * scaled_ + kHalf) >> kFraction));
  }

  // Counts a last byte that is partly through.
  uint64_t BytesIn(base::Duration time) const;

 private:
  static constexpr int kFraction = 16;
  static constexpr uint64_t kHalf = uint64_t{1} << (kFraction - 1);

  constexpr explicit Rate(uint64_t bits)
      : bits_per_second_(bits), scaled_(((uint64_t{8'000'000'000'000} << kFraction) + bits / 2) / bits) {}

  uint64_t bits_per_second_;
  uint64_t scaled_;  // picoseconds for a byte, with kFraction binary places
};

}  // namespace tokamak::sim
