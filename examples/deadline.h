// Deadline is a moment by which several waits together must end.
#pragma once

#include <algorithm>
#include <chrono>

#include "examples/units.h"

namespace tokamak::example {

class Deadline final {
 public:
  static Deadline After(Seconds time) {
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(time));
  }

  // Zero when it has passed.
  Seconds remaining() const { return std::max(Seconds(0), Seconds(time_ - Clock::now())); }
  bool passed() const { return Clock::now() >= time_; }

 private:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(Clock::time_point time) : time_(time) {}

  Clock::time_point time_;
};

}  // namespace tokamak::example
