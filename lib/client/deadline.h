// Deadline is a moment on the machine's steady clock by which a call must end.
#pragma once

#include <algorithm>
#include <chrono>

#include "lib/base/time.h"

namespace tokamak::client {

class Deadline final {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline After(base::Duration duration) {
    return Deadline(Clock::now() + std::chrono::nanoseconds(std::max<int64_t>(0, duration.nanoseconds())));
  }

  // Zero when it has passed.
  base::Duration remaining() const {
    return base::Nanoseconds(std::max<int64_t>(0, std::chrono::nanoseconds(time_ - Clock::now()).count()));
  }
  bool passed() const { return Clock::now() >= time_; }
  Clock::time_point time() const { return time_; }

 private:
  explicit Deadline(Clock::time_point time) : time_(time) {}
  Clock::time_point time_;
};

}  // namespace tokamak::client
