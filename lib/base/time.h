// Time as logic sees it: whole picoseconds, so that 334.24 ns on a simulated wire stays 334.24 ns.
//
// `Duration` is a signed span (up to 106 days). `Time` counts from the loop's start and compares as
// a serial number: times less than 106 days apart order correctly even after a wrap.
#pragma once

#include <cstdint>

namespace tokamak::base {

class Duration final {
 public:
  constexpr Duration() = default;
  static constexpr Duration Picoseconds(int64_t n) { return Duration(n); }

  constexpr int64_t picoseconds() const { return picoseconds_; }
  constexpr int64_t nanoseconds() const { return picoseconds_ / 1000; }
  constexpr int64_t microseconds() const { return picoseconds_ / 1'000'000; }
  constexpr int64_t milliseconds() const { return picoseconds_ / 1'000'000'000; }
  constexpr double seconds() const { return static_cast<double>(picoseconds_) * 1e-12; }

  constexpr Duration operator+(Duration other) const { return Duration(picoseconds_ + other.picoseconds_); }
  constexpr Duration operator-(Duration other) const { return Duration(picoseconds_ - other.picoseconds_); }
  constexpr Duration operator*(int64_t factor) const { return Duration(picoseconds_ * factor); }
  constexpr Duration operator/(int64_t divisor) const { return Duration(picoseconds_ / divisor); }
  constexpr bool operator==(Duration other) const { return picoseconds_ == other.picoseconds_; }
  constexpr bool operator!=(Duration other) const { return picoseconds_ != other.picoseconds_; }
  constexpr bool operator<(Duration other) const { return picoseconds_ < other.picoseconds_; }
  constexpr bool operator<=(Duration other) const { return picoseconds_ <= other.picoseconds_; }
  constexpr bool operator>(Duration other) const { return picoseconds_ > other.picoseconds_; }
  constexpr bool operator>=(Duration other) const { return picoseconds_ >= other.picoseconds_; }

 private:
  constexpr explicit Duration(int64_t picoseconds) : picoseconds_(picoseconds) {}
  int64_t picoseconds_ = 0;
};

constexpr Duration Nanoseconds(int64_t n) { return Duration::Picoseconds(n * 1000); }
constexpr Duration Microseconds(int64_t n) { return Duration::Picoseconds(n * 1'000'000); }
constexpr Duration Milliseconds(int64_t n) { return Duration::Picoseconds(n * 1'000'000'000); }
constexpr Duration Seconds(int64_t n) { return Duration::Picoseconds(n * 1'000'000'000'000); }

class Time final {
 public:
  constexpr Time() = default;
  static constexpr Time FromPicoseconds(uint64_t n) { return Time(n); }

  constexpr uint64_t picoseconds() const { return picoseconds_; }

  constexpr Time operator+(Duration d) const { return Time(picoseconds_ + static_cast<uint64_t>(d.picoseconds())); }
  constexpr Time operator-(Duration d) const { return Time(picoseconds_ - static_cast<uint64_t>(d.picoseconds())); }
  constexpr Duration operator-(Time other) const {
    return Duration::Picoseconds(static_cast<int64_t>(picoseconds_ - other.picoseconds_));
  }
  constexpr bool operator==(Time other) const { return picoseconds_ == other.picoseconds_; }
  constexpr bool operator!=(Time other) const { return picoseconds_ != other.picoseconds_; }
  constexpr bool operator<(Time other) const { return (*this - other) < Duration(); }
  constexpr bool operator<=(Time other) const { return (*this - other) <= Duration(); }
  constexpr bool operator>(Time other) const { return (*this - other) > Duration(); }
  constexpr bool operator>=(Time other) const { return (*this - other) >= Duration(); }

 private:
  constexpr explicit Time(uint64_t picoseconds) : picoseconds_(picoseconds) {}
  uint64_t picoseconds_ = 0;
};

}  // namespace tokamak::base
