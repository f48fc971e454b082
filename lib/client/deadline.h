// Deadline is a moment on the machine's steady clock by which a call must end.
//
// The daemon ends a call with a timeout; the program waits longer, for its answer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "lib/base/time.h"
#include "lib/client/protocol/protocol.h"

namespace tokamak::client {

// A timeout as it is sent to the daemon.
inline uint64_t TimeoutMicroseconds(base::Duration timeout) {
  return std::min(static_cast<uint64_t>(std::max<int64_t>(0, timeout.microseconds())), kMaxTimeoutMicroseconds);
}

class Deadline final {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline After(base::Duration duration) {
    return Deadline(Clock::now() + std::chrono::nanoseconds(std::max<int64_t>(0, duration.nanoseconds())));
  }

  // The deadline of a call that the daemon ends after `timeout`; `call_timeout` more is for its
  // answer.
  static Deadline OfAnswer(base::Duration timeout, base::Duration call_timeout) {
    return After(base::Microseconds(static_cast<int64_t>(TimeoutMicroseconds(timeout))) + call_timeout);
  }
  static Deadline Never() { return Deadline(Clock::time_point::max()); }
  static Deadline Earlier(Deadline one, Deadline other) { return one.time_ < other.time_ ? one : other; }

  // Zero once the deadline has passed.
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
