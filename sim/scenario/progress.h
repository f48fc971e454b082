// Progress prints how far a run has come, about once a second of real time.
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>

#include "lib/base/time.h"

namespace tokamak::sim {

class Progress final {
 public:
  explicit Progress(std::ostream& out) : out_(out), begin_(Clock::now()), last_(begin_) {}

  // Cheap: reads the clock now and then. `part` (0 to 1) runs when a line is due.
  template <typename Part>
  void Look(uint64_t events, base::Duration simulated, const Part& part) {
    if ((++looks_ & kMask) == 0 && Clock::now() - last_ >= std::chrono::seconds(1)) Print(events, simulated, part());
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t kMask = 4095;

  void Print(uint64_t events, base::Duration simulated, double part);

  std::ostream& out_;
  const Clock::time_point begin_;
  Clock::time_point last_;
  uint64_t last_events_ = 0;
  uint64_t looks_ = 0;
};

}  // namespace tokamak::sim
