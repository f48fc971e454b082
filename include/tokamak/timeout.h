// Timeout is how long a call may wait: zero to a day.
//
//   client.Get(id, std::chrono::seconds(5));
//   client.Get(id, std::chrono::duration<double>(0.25));
//   client.Get(id, tokamak::Timeout::Longest());
//
// Any std::chrono::duration is one. A negative one is zero, and one longer than a day is a day, so
// that no caller has to mind overflow: to wait longer, ask again.
#pragma once

#include <chrono>

namespace tokamak {

class Timeout final {
 public:
  // Zero: the call looks, and does not wait.
  constexpr Timeout() = default;

  template <typename Rep, typename Period>
  constexpr Timeout(std::chrono::duration<Rep, Period> duration) : duration_(Bounded(duration)) {}

  static constexpr Timeout Longest() { return Timeout(kLongest); }

  constexpr std::chrono::nanoseconds duration() const { return duration_; }

 private:
  static constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24);

  // Compared as floating point, which every duration fits.
  template <typename Rep, typename Period>
  static constexpr std::chrono::nanoseconds Bounded(std::chrono::duration<Rep, Period> duration) {
    const std::chrono::duration<double> seconds(duration);
    if (!(seconds.count() > 0)) return std::chrono::nanoseconds(0);  // nor is it where it is not a number
    if (seconds >= std::chrono::duration<double>(kLongest)) return kLongest;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(duration);
  }

  std::chrono::nanoseconds duration_{0};
};

}  // namespace tokamak
